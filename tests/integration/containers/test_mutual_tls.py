"""CLI-5 in containers: each service's image with certificates and a token mounted, on a network of their own."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer
from testcontainers.core.network import Network

from tests.integration.containers.stack import BUILD_TIMEOUT_SECONDS, GRPCURL, IMAGE_TAG, SERVICES
from tests.integration.runtime.certificates import Certificate, authority, issued

pytestmark = [
    pytest.mark.container,
    pytest.mark.slow,
    pytest.mark.timeout(BUILD_TIMEOUT_SECONDS + 300),
]

# The fixtures below remove what they start; Ryuk, which would do so after a crash, is an image of a registry.
testcontainers_config.ryuk_disabled = True

PORTS = {name: 50051 + number for number, name in enumerate(SERVICES)}
START_SECONDS = 120
ANSWER_SECONDS = 10


@dataclass(frozen=True)
class Identity:
    """What a client shows: a certificate, a token, both or neither."""

    certificate: Certificate | None
    token: str | None


@dataclass(frozen=True)
class GuardedServices:
    """The running containers by service."""

    containers: Mapping[str, DockerContainer]
    ca: Certificate
    member: Identity

    def grpcurl(self, service: str, client: Identity, *call: str) -> tuple[int, str]:
        """Exit code and output of the real grpcurl, called by `client`."""
        command = [GRPCURL, "-max-time", str(ANSWER_SECONDS), "-cacert", str(self.ca.cert_file)]
        if client.certificate:
            command += ["-cert", str(client.certificate.cert_file), "-key", str(client.certificate.key_file)]
        if client.token:
            command += ["-H", f"authorization: Bearer {client.token}"]
        address = f"127.0.0.1:{self.containers[service].get_exposed_port(PORTS[service])}"
        *options, method = call
        done = subprocess.run([*command, *options, address, method], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout + done.stderr

    def greets(self, service: str, certificate: Certificate | None) -> bool:
        """Whether the server speaks (HTTP/2 servers speak first) to who shows this certificate, or breaks off."""
        context = ssl.create_default_context(cafile=self.ca.cert_file)
        context.set_alpn_protocols(["h2"])
        if certificate:
            context.load_cert_chain(certificate.cert_file, certificate.key_file)
        port = self.containers[service].get_exposed_port(PORTS[service])
        with (
            socket.create_connection(("127.0.0.1", port), timeout=ANSWER_SECONDS) as plain,
            contextlib.suppress(ssl.SSLError, ConnectionError),
            context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
        ):
            return secure.recv(1) != b""
        return False

    def wait_until_ready(self, service: str) -> None:
        """Returns once the service speaks to its members; raises AssertionError with its log when it doesn't."""
        deadline = time.monotonic() + START_SECONDS
        while not self.greets(service, self.member.certificate):
            assert time.monotonic() < deadline, self.containers[service].get_logs()
            time.sleep(0.2)


def _container(name: str, network: Network, files: Mapping[str, Path]) -> DockerContainer:
    container = DockerContainer(f"videotree-{name}:{IMAGE_TAG}", network=network, network_aliases=[name])
    for target, source in files.items():
        source.chmod(0o444)  # the container's user is not the one who runs the tests
        container.with_volume_mapping(str(source), f"/run/secrets/{target}", "ro")
    container.with_envs(
        VIDEOTREE_RUNTIME_HOST="0.0.0.0",
        VIDEOTREE_TLS_CERT_FILE="/run/secrets/cert",
        VIDEOTREE_TLS_KEY_FILE="/run/secrets/key",
        VIDEOTREE_TLS_CA_FILE="/run/secrets/ca",
        VIDEOTREE_TOKEN_FILE="/run/secrets/token",
        **{f"VIDEOTREE_{other.upper()}_ADDRESS": f"{other}:{port}" for other, port in PORTS.items()},
    )
    if name == "inference":
        container.with_envs(LLM_BASE_URL="http://127.0.0.1:9/v1", LLM_MODEL="none", VIDEOTREE_CACHE_DIR="/tmp/cache")
    container.tmpfs = {"/tmp": "", "/data": "uid=10001,gid=10001"}
    container.with_kwargs(read_only=True, cap_drop=["ALL"], security_opt=["no-new-privileges"])
    return container.with_exposed_ports(PORTS[name])


@pytest.fixture(scope="module")
def guarded(images: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedServices]:
    folder = tmp_path_factory.mktemp("tls")
    ca = authority(folder, "ca")
    token_file = folder / "token"
    token_file.write_text("the-token-of-these-containers", encoding="utf-8")
    with ExitStack() as cleanup:
        network = cleanup.enter_context(Network())
        containers = {}
        for name in SERVICES:
            own = issued(folder, name, ca, [name])
            files = {"cert": own.cert_file, "key": own.key_file, "ca": ca.cert_file, "token": token_file}
            containers[name] = cleanup.enter_context(_container(name, network, files))
        member = Identity(issued(folder, "client", ca), token_file.read_text(encoding="utf-8"))
        services = GuardedServices(containers, ca, member)
        for name in SERVICES:
            services.wait_until_ready(name)
        yield services


@pytest.mark.parametrize("service", SERVICES)
def test_cli_5_who_shows_certificate_and_token_is_served(guarded: GuardedServices, service: str) -> None:
    code, output = guarded.grpcurl(service, guarded.member, "list")
    assert code == 0, output
    assert f"videotree.{service}.v1." in output


@pytest.mark.parametrize("service", SERVICES)
def test_cli_5_a_certificate_without_the_token_is_refused(guarded: GuardedServices, service: str) -> None:
    code, output = guarded.grpcurl(service, Identity(guarded.member.certificate, None), "list")
    assert code != 0
    assert "Unauthenticated" in output


@pytest.mark.parametrize("service", SERVICES)
def test_cli_5_who_shows_no_certificate_of_the_ca_is_refused_before_any_token(
    guarded: GuardedServices, service: str, tmp_path: Path
) -> None:
    stranger = issued(tmp_path, "stranger", authority(tmp_path, "another-ca"))
    assert guarded.greets(service, guarded.member.certificate)
    assert not guarded.greets(service, None)
    assert not guarded.greets(service, stranger)


@pytest.mark.parametrize("service", SERVICES)
def test_cli_5_the_images_own_health_check_passes_through_tls(guarded: GuardedServices, service: str) -> None:
    code, output = guarded.containers[service].exec(
        ["python", "-m", "services.runtime.probe", f"127.0.0.1:{PORTS[service]}"]
    )
    assert (code, output) == (0, b"SERVING\n")


def test_cli_5_services_call_each_other_through_tls_with_the_token(guarded: GuardedServices) -> None:
    names = {"workspace": "none", "dataset": "none", "prompts_version": "v1", "run_id": "r"}
    request = json.dumps({**names, "question_ids": ["q"], "skills": {"version": "v1"}})
    method = "videotree.inference.v1.AgentService/AnswerQuestions"
    code, output = guarded.grpcurl("inference", guarded.member, "-d", request, method)
    assert code != 0
    assert "Code: NotFound" in output  # which inference can only know from the store
