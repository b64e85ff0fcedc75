"""DEP-1..DEP-4: the real images, built without a registry, run by the real compose file."""

from __future__ import annotations

import urllib.request

import grpc
import pytest

from tests.integration.containers.stack import BUILD_TIMEOUT_SECONDS, SERVICES, Stack

pytestmark = [
    pytest.mark.container,
    pytest.mark.slow,
    pytest.mark.timeout(BUILD_TIMEOUT_SECONDS + 300),
]


@pytest.mark.parametrize("service", [*SERVICES, "redis", "simulator"])
def test_dep_1_every_container_becomes_healthy(stack: Stack, service: str) -> None:
    stack.wait_until_healthy(service)


@pytest.mark.parametrize("service", [*SERVICES, "redis", "simulator"])
def test_cli_5_containers_are_confined(stack: Stack, service: str) -> None:
    details = stack.container(service)
    config, host = details["Config"], details["HostConfig"]
    assert isinstance(config, dict)
    assert isinstance(host, dict)
    assert config["User"] == "10001:10001"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert host["Memory"] > 0
    assert host["LogConfig"]["Config"] == {"max-size": "10m", "max-file": "3"}
    published = [binding["HostIp"] for bindings in (host["PortBindings"] or {}).values() for binding in bindings]
    assert published == ([] if service == "redis" else ["127.0.0.1"])


@pytest.mark.parametrize(
    ("service", "method", "request_json", "key"),
    [
        ("store", "videotree.store.v1.WorkspaceService/ListWorkspaces", "{}", None),
        ("inference", "videotree.inference.v1.ModelService/ListEndpoints", "{}", "endpoints"),
        (
            "gate",
            "videotree.gate.v1.GateService/DecideVerdict",
            '{"w": 8, "l": 0, "n_used": 8, "n_remaining": 4}',
            "verdict",
        ),
        (
            "evolver",
            "videotree.evolver.v1.EvolverService/ApplyEdits",
            '{"skill_text": "---\\nname: a\\ndescription: b\\n---\\nLook twice before you choose an option.\\n",'
            ' "edits": [{"op": "EDIT_OP_APPEND", "content": "Then answer."}]}',
            "text",
        ),
    ],
)
def test_dep_4_grpcurl_calls_each_service(
    stack: Stack, service: str, method: str, request_json: str, key: str | None
) -> None:
    stack.wait_until_healthy(service)
    answer = stack.grpcurl(service, method, request_json)
    assert key is None or key in answer


@pytest.mark.parametrize("service", SERVICES)
def test_cli_5_a_call_without_the_token_is_refused(stack: Stack, service: str) -> None:
    stack.wait_until_healthy(service)
    with grpc.insecure_channel(f"127.0.0.1:{stack.ports[service]}") as channel:
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary("/grpc.reflection.v1alpha.ServerReflection/Nothing")(b"", timeout=10)
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED
        with pytest.raises(grpc.RpcError) as caught:
            list(channel.stream_stream("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")(iter([b""])))
        assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED


def test_dep_1_the_simulated_model_answers(stack: Stack) -> None:
    stack.wait_until_healthy("simulator")
    with urllib.request.urlopen(f"http://127.0.0.1:{stack.ports['simulator']}/v1/models", timeout=10) as answer:
        assert b"sim-agent" in answer.read()


def test_dep_4_a_killed_store_comes_back_with_its_data(stack: Stack) -> None:
    stack.wait_until_healthy("store")
    stack.compose("kill", "-s", "KILL", "store")
    stack.wait_for_status("store", "exited")
    stack.compose("start", "store")
    stack.wait_until_healthy("store")
    stack.grpcurl("store", "videotree.store.v1.WorkspaceService/ListWorkspaces")
