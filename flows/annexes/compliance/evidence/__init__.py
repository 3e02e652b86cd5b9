"""Evidence, reports and bundles beside what their own numbers give: this part takes NumPy and SciPy alone."""
