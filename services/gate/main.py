"""The gate service: `python -m services.gate.main`."""

from __future__ import annotations

import grpc
from videotree.gate.v1 import gate_service_pb2, gate_service_pb2_grpc

from services.gate.adapters.inference_client import GrpcInference
from services.gate.adapters.store_client import GrpcStore
from services.gate.config import GateConfig
from services.gate.rpc.servicer import Defaults, GateServicer
from services.gate.rpc.status_codes import STATUS_RULES
from services.gate.use_cases.validate_skills import ValidateSkills
from services.runtime.channels import open_channel
from services.runtime.entry import service_main
from services.runtime.serving import ServiceParts


async def build(config: GateConfig) -> ServiceParts:
    """The service's parts; its channels connect on first use."""
    store_channel, inference_channel = open_channel(config.store_address), open_channel(config.inference_address)
    validate = ValidateSkills(GrpcInference(inference_channel), GrpcStore(store_channel))
    servicer = GateServicer(validate, defaults_of(config))

    def register(server: grpc.aio.Server) -> None:
        gate_service_pb2_grpc.add_GateServiceServicer_to_server(servicer, server)

    async def close() -> None:
        await inference_channel.close()
        await store_channel.close()

    names = (gate_service_pb2.DESCRIPTOR.services_by_name["GateService"].full_name,)
    return ServiceParts(register, names, STATUS_RULES, close)


def defaults_of(config: GateConfig) -> Defaults:
    """What holds where a request says nothing."""
    return Defaults(
        config.gate_parameters(), config.round_options(), config.ladder_parameters(), config.probation_parameters()
    )


def main() -> int:
    """Serve until stopped; the exit code."""
    return service_main("gate", GateConfig, build)


if __name__ == "__main__":
    raise SystemExit(main())
