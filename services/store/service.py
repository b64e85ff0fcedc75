"""From ports to servicers: what every store is made of, whatever its ports stand on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import grpc
from videotree.store.v1 import (
    library_service_pb2,
    library_service_pb2_grpc,
    prediction_pb2,
    run_service_pb2,
    run_service_pb2_grpc,
    training_service_pb2,
    training_service_pb2_grpc,
    version_service_pb2,
    version_service_pb2_grpc,
    workspace_service_pb2,
    workspace_service_pb2_grpc,
)

from services.runtime.serving import ServiceParts
from services.store.rpc.library_servicer import LibraryServicer
from services.store.rpc.run_servicer import RunServicer
from services.store.rpc.status_codes import STATUS_RULES
from services.store.rpc.training_servicer import TrainingServicer
from services.store.rpc.version_servicer import VersionServicer
from services.store.rpc.workspace_servicer import WorkspaceServicer, WorkspaceUseCases
from services.store.use_cases.backups import BackupWorkspaces
from services.store.use_cases.commits import Commits
from services.store.use_cases.holds import Holds
from services.store.use_cases.library import Library
from services.store.use_cases.manifests import ManifestProjection
from services.store.use_cases.named_workspaces import NamedWorkspaces
from services.store.use_cases.pools import FrozenPools
from services.store.use_cases.ports import Backups, Clock, Folder, Ledger, LedgerFolders
from services.store.use_cases.runs import Runs
from services.store.use_cases.seeds import Seeds
from services.store.use_cases.standing_answers import LedgerAnswers
from services.store.use_cases.training_records import TrainingRecords
from services.store.use_cases.versions import Versions
from services.store.use_cases.workspaces import Workspaces

_FILES = (
    library_service_pb2,
    workspace_service_pb2,
    version_service_pb2,
    run_service_pb2,
    training_service_pb2,
)


@dataclass(frozen=True, slots=True)
class Ports:
    """What a store stands on."""

    library: Folder
    workspaces: LedgerFolders
    seeds: LedgerFolders
    backups: Backups
    own_log: Ledger
    clock: Clock


def service_parts(ports: Ports, projection: ManifestProjection, close: Callable[[], Awaitable[None]]) -> ServiceParts:
    """Return the store's servicers on these ports, ready to be served."""
    workspaces = NamedWorkspaces(ports.workspaces)
    library = Library(ports.library, LedgerAnswers(ports.workspaces, ports.seeds))
    seeds = Seeds(ports.seeds, workspaces, ports.clock)
    does = WorkspaceUseCases(
        workspaces=Workspaces(workspaces, seeds, library, projection, ports.clock),
        pools=FrozenPools(workspaces, projection),
        seeds=seeds,
        backups=BackupWorkspaces(workspaces, ports.backups, projection, ports.clock),
    )
    columns = tuple(field.name for field in prediction_pb2.Prediction.DESCRIPTOR.fields)
    runs = Runs(workspaces, ports.own_log, ports.clock, columns)
    commits, records = Commits(workspaces, projection, ports.clock), TrainingRecords(workspaces, ports.clock)
    training = TrainingServicer(commits, records, Holds(workspaces))

    def register(server: grpc.aio.Server) -> None:
        library_service_pb2_grpc.add_LibraryServiceServicer_to_server(LibraryServicer(library), server)
        workspace_service_pb2_grpc.add_WorkspaceServiceServicer_to_server(WorkspaceServicer(does), server)
        versions = VersionServicer(Versions(workspaces, ports.clock))
        version_service_pb2_grpc.add_VersionServiceServicer_to_server(versions, server)
        run_service_pb2_grpc.add_RunServiceServicer_to_server(RunServicer(runs), server)
        training_service_pb2_grpc.add_TrainingServiceServicer_to_server(training, server)

    names = tuple(service.full_name for file in _FILES for service in file.DESCRIPTOR.services_by_name.values())
    return ServiceParts(register, names, STATUS_RULES, close)
