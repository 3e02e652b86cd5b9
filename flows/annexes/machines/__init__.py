"""Many machines: Dask, results in an object store where there is no shared disk, and workers that share a suite."""

from bandana.flows.annex import Annex

ANNEX = Annex(
    plugs={
        "commands": {"work": f"{__name__}.command:work"},
        "runners": {"dask": f"{__name__}.dask_cluster:task_runner"},
        "limits": {"dask": f"{__name__}.dask_cluster:kept"},
        "stores": {"s3": f"{__name__}.object_files:files_at"},
    },
    pages=("deploy/prefect.shards.yaml",),
)
