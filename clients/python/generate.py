"""Generates the Python code of Writ's contracts in `gen/`, with the generator of grpcio-tools."""

import shutil
import sys
from pathlib import Path

from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INCLUDES = (ROOT / "proto", ROOT / "vendor" / "proto")


def main() -> int:
    """Generates into a fresh folder; returns the exit code of protoc."""
    target = HERE / "gen"
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    contracts = sorted(str(path.relative_to(INCLUDES[0])) for path in INCLUDES[0].rglob("*.proto"))
    return int(
        protoc.main(
            [
                "protoc",
                *(f"--proto_path={folder}" for folder in INCLUDES),
                f"--proto_path={Path(protoc.__file__).parent / '_proto'}",
                f"--python_out={target}",
                f"--pyi_out={target}",
                f"--grpc_python_out={target}",
                "buf/validate/validate.proto",
                *contracts,
            ]
        )
    )


if __name__ == "__main__":
    sys.exit(main())
