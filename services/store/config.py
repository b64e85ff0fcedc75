"""The store's section of `videotree.toml`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, SecretStr

from services.runtime.config import ServingConfig


class StoreConfig(ServingConfig):
    """Where the data lies and how it is served."""

    port: int = Field(50051, description="gRPC port; 0 takes a free one")
    metrics_port: int = Field(9051, description="Port of the Prometheus page; 0 switches it off")
    data: Path = Field(Path("data"), validation_alias="VIDEOTREE_DATA", description="Data root, owned by one store")
    postgres_url: SecretStr = Field(
        SecretStr(""), description="PostgreSQL server that holds the workspaces' databases; empty means SQLite files"
    )
    readers: int = Field(4, ge=1, le=64, description="Reading connections a workspace")
