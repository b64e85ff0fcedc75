"""The evolver service: `python -m services.evolver.main`."""

from __future__ import annotations

import grpc
from videotree.evolver.v1 import evolver_service_pb2, evolver_service_pb2_grpc

from services.evolver.adapters.model_client import GrpcModel
from services.evolver.adapters.store_archive import StoreArchive
from services.evolver.config import EvolverConfig
from services.evolver.rpc.servicer import EvolverServicer, UseCases
from services.evolver.rpc.status_codes import STATUS_RULES
from services.evolver.templates import diagnosis_sha256, engine_files, load_templates
from services.evolver.use_cases.ask_model import AskModel
from services.evolver.use_cases.consolidate_appendix import ConsolidateAppendix
from services.evolver.use_cases.diagnose_case import DiagnoseCase
from services.evolver.use_cases.diagnose_run import DiagnoseRun
from services.evolver.use_cases.ports import Model, RunArchive
from services.evolver.use_cases.propose_edit import ProposeEdit
from services.evolver.use_cases.propose_slow_update import ProposeSlowUpdate
from services.evolver.use_cases.score_evidence import ScoreEvidence
from services.runtime.channels import open_channel
from services.runtime.entry import service_main
from services.runtime.serving import ServiceParts


async def build(config: EvolverConfig) -> ServiceParts:
    """The service's parts; its channels connect on first use. Raises ConfigError when a template is missing."""
    store_channel, inference_channel = open_channel(config.store_address), open_channel(config.inference_address)
    archive = StoreArchive(store_channel, config.store_retry_seconds)
    model = GrpcModel(inference_channel, config.model_timeout_seconds, config.model_retry_seconds)
    servicer = EvolverServicer(use_cases_of(config, archive, model))

    def register(server: grpc.aio.Server) -> None:
        evolver_service_pb2_grpc.add_EvolverServiceServicer_to_server(servicer, server)

    async def close() -> None:
        await inference_channel.close()
        await store_channel.close()

    names = (evolver_service_pb2.DESCRIPTOR.services_by_name["EvolverService"].full_name,)
    return ServiceParts(register, names, STATUS_RULES, close)


def use_cases_of(config: EvolverConfig, archive: RunArchive, model: Model) -> UseCases:
    """Return the use cases on the given ports; raises ConfigError when a template is missing."""
    files = engine_files(config.prompts_dir)
    ask = AskModel(model, load_templates(files), config.model_concurrency)
    workers = config.model_concurrency
    case = DiagnoseCase(ask, config.judge_bounds())
    return UseCases(
        DiagnoseRun(archive, case, config.pack_limits(), workers, diagnosis_sha256(files)),
        ProposeEdit(ask, config.skill_max_chars, config.rejected_shown),
        ProposeSlowUpdate(ask, config.skill_max_chars, config.momentum_max_chars),
        ConsolidateAppendix(ask, config.skill_max_chars, config.appendix_consolidate_threshold),
        ScoreEvidence(archive, ask, workers, config.judge_evidence),
        config.skill_max_chars,
    )


def main() -> int:
    """Serve until stopped; the exit code."""
    return service_main("evolver", EvolverConfig, build)


if __name__ == "__main__":
    raise SystemExit(main())
