r"""A Matplotlib backend for figures that LaTeX reads by `\input`, made without LaTeX: `backend="module://<this module>"`.

Texts are measured in Matplotlib's own font. Only the room around them depends on it: the document's font sets them.
"""

# mypy: disallow-untyped-calls=False
# (Matplotlib's renderers have no types.)

from __future__ import annotations

import io
from typing import IO, TYPE_CHECKING

from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.backends.backend_pgf import RendererPgf
from matplotlib.textpath import TextPath

from bandana.flows.annexes.publication.latex import escaped

if TYPE_CHECKING:
    from matplotlib.backend_bases import GraphicsContextBase
    from matplotlib.font_manager import FontProperties

_BEGIN = r"""%% A figure to be read with \input; needs \usepackage{{pgf}}.
\begingroup%
\makeatletter%
\begin{{pgfpicture}}%
\pgfpathrectangle{{\pgfpointorigin}}{{\pgfqpoint{{{:f}in}}{{{:f}in}}}}%
\pgfusepath{{use as bounding box, clip}}%
"""
_END = r"""\end{pgfpicture}%
\makeatother%
\endgroup%
"""


class Renderer(RendererPgf):
    """The PGF renderer with texts that LaTeX sets as they are, measured without it."""

    def get_text_width_height_descent(self, s: str, prop: FontProperties, ismath: bool | str) -> tuple[float, float, float]:
        """Measures a text, in pixels."""
        if not s.strip():
            return 0.0, 0.0, 0.0
        box = TextPath((0, 0), s, size=self.points_to_pixels(prop.get_size_in_points()), prop=prop).get_extents()
        return box.width, box.height, max(0.0, -box.y0)

    def draw_text(self, gc: GraphicsContextBase, x: float, y: float, s: str, *more: object, **style: object) -> None:
        """Writes a text, in which LaTeX's own signs are escaped."""
        super().draw_text(gc, x, y, escaped(s), *more, **style)


class FigureCanvas(FigureCanvasBase):
    """The canvas by which `Figure.savefig` finds this backend."""

    def get_renderer(self) -> Renderer:
        """Makes a renderer that measures texts for the layout, and keeps nothing of what it draws."""
        return Renderer(self.figure, io.StringIO())

    def print_pgf(self, file: IO[bytes], **_: object) -> None:
        """Writes the figure to a binary file."""
        text = io.StringIO()
        text.write(_BEGIN.format(*self.figure.get_size_inches()))
        self.figure.draw(Renderer(self.figure, text))
        text.write(_END)
        file.write(text.getvalue().encode())
