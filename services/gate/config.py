"""The gate's configuration: the section `[gate]`."""

from __future__ import annotations

from pydantic import Field, model_validator

from services.gate.domain.errors import InvalidParameter
from services.gate.domain.evidence import Mixture
from services.gate.domain.guard import GuardLimits
from services.gate.domain.ladder import LadderParameters
from services.gate.domain.probation import ProbationParameters
from services.gate.domain.round_spec import BASE_SALT, RoundOptions
from services.gate.domain.verdict import GateParameters
from services.runtime.config import ServingConfig

NO_SALT = "none"


class GateConfig(ServingConfig):
    """Where the gate listens, whom it calls, and the defaults that a request may override."""

    port: int = Field(50053, description="gRPC port; 0 takes a free one")
    metrics_port: int = Field(9053, description="Port of the Prometheus page; 0 switches it off")
    store_address: str = Field("127.0.0.1:50051", validation_alias="VIDEOTREE_STORE_ADDRESS")
    inference_address: str = Field("127.0.0.1:50052", validation_alias="VIDEOTREE_INFERENCE_ADDRESS")

    mixture: Mixture = Field(Mixture.UNIFORM, description="uniform or one_sided")
    e_confirm: float = Field(20.0, description="Evidence that confirms")
    e_provisional: float = Field(3.0, description="Evidence that accepts provisionally at the end of the ladder")
    w_net_min: int = Field(2, description="Least W - L of an accept")
    delta_min: float = Field(0.02, description="Least (W - L) / units of an accept")
    lambda_dir: float = Field(-0.642, description="Log likelihood ratio that rejects the direction")
    p1: float = Field(0.7, description="Win probability of a flip that the direction exit tests against")

    concurrency: int = Field(32, description="Question slots that all types of a round share")
    cancel_in_flight: bool = Field(False, description="Cancel arms in flight when their type freezes")
    max_speculation: int | None = Field(None, description="Units launched beyond the prefix at most; none is no bound")
    guard_err: float = Field(0.10, description="Share of infrastructure faults that aborts a round")
    guard_min_questions: int = Field(10, description="Questions to have run in a type before the guard looks")
    base_salt: str = Field(BASE_SALT, description="Salt of base arms; none reuses the draw of the seed's baseline")

    n_max: int = Field(60, description="Longest ladder")
    p_low: float = Field(0.1, description="Lower end of the informative range of estimates")
    p_high: float = Field(0.9, description="Upper end of the informative range of estimates")
    e_rollback: float = Field(10.0, description="Evidence against a skill on probation that rolls it back")
    probation_units: int = Field(30, description="Units after which a skill on probation is kept")

    @model_validator(mode="after")
    def _defaults_are_valid(self) -> GateConfig:
        try:
            self.gate_parameters()
            self.round_options()
            self.ladder_parameters()
            self.probation_parameters()
        except InvalidParameter as error:
            raise ValueError(str(error)) from error
        return self

    def gate_parameters(self) -> GateParameters:
        """The thresholds of a gate whose request names none."""
        return GateParameters(
            self.mixture,
            self.e_confirm,
            self.e_provisional,
            self.w_net_min,
            self.delta_min,
            self.lambda_dir,
            self.p1,
        )

    def round_options(self) -> RoundOptions:
        """How a round is run whose request says nothing of it."""
        return RoundOptions(
            concurrency=self.concurrency,
            cancel_in_flight=self.cancel_in_flight,
            max_speculation=self.max_speculation,
            guard=GuardLimits(self.guard_err, self.guard_min_questions),
            base_salt=None if self.base_salt == NO_SALT else self.base_salt,
        )

    def ladder_parameters(self) -> LadderParameters:
        """How a ladder is built whose request says nothing of it."""
        return LadderParameters(self.n_max, self.p_low, self.p_high)

    def probation_parameters(self) -> ProbationParameters:
        """The bars of a probation whose request names none."""
        return ProbationParameters(self.mixture, self.e_rollback, self.e_confirm, self.probation_units)
