"""The evolver's configuration: the section `[evolver]`."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from services.evolver.domain.case_pack import PackLimits
from services.evolver.domain.stages import Bounds
from services.runtime.config import ServingConfig


class EvolverConfig(ServingConfig):
    """Where the evolver listens, whom it calls, and the bounds of what it shows to models."""

    port: int = Field(50054, description="gRPC port; 0 takes a free one")
    metrics_port: int = Field(9054, description="Port of the Prometheus page; 0 switches it off")
    store_address: str = Field("127.0.0.1:50051", validation_alias="VIDEOTREE_STORE_ADDRESS")
    inference_address: str = Field("127.0.0.1:50052", validation_alias="VIDEOTREE_INFERENCE_ADDRESS")

    prompts_dir: Path | None = Field(None, description="Folder with diagnose/, evolve/ and slow/; none is the bundled")
    model_concurrency: int = Field(16, ge=1, le=1024, description="Judge and optimizer calls in flight at once")
    model_timeout_seconds: float = Field(600.0, gt=0, description="Deadline of one model call with its retries")
    model_retry_seconds: float = Field(30.0, ge=0, description="Seconds that models which are away are asked again")
    store_retry_seconds: float = Field(20.0, ge=0, description="Seconds that a store which is away is tried again")
    judge_evidence: bool = Field(True, description="Let the judge rate evidence; off, no score is given")

    skill_max_chars: int = Field(20_000, ge=200, le=1_000_000, description="Longest skill or prompt file")
    momentum_max_chars: int = Field(1_500, ge=100, description="Longest MOMENTUM block")
    appendix_consolidate_threshold: int = Field(12, ge=1, description="Reminders above which the list is merged")
    rejected_shown: int = Field(5, ge=0, le=100, description="Refused proposals shown to the next one")
    pack_failures: int = Field(8, ge=1, le=200, description="Failures in a case pack")
    pack_successes: int = Field(4, ge=0, le=200, description="Successes in a case pack")
    pack_tokens: int = Field(40_000, ge=1000, description="Tokens of a case pack's texts together, estimated")
    trace_tokens: int = Field(12_000, ge=500, description="Tokens of a trace shown to the judge, estimated")
    tree_tokens: int = Field(8_000, ge=500, description="Tokens of a tree outline shown to the judge, estimated")

    def pack_limits(self) -> PackLimits:
        """The bounds of a case pack."""
        return PackLimits(self.pack_failures, self.pack_successes, self.pack_tokens)

    def judge_bounds(self) -> Bounds:
        """The bounds of what a judge is shown."""
        return Bounds(self.trace_tokens, self.tree_tokens)
