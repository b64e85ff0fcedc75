"""What both ends of a connection agree on: limits, keepalive and TLS."""

from __future__ import annotations

from pathlib import Path

import grpc

from services.runtime.config import ConfigError

_PING_MILLISECONDS = 30_000
_PING_ANSWER_MILLISECONDS = 10_000
_METADATA_BYTES = 1024 * 1024

ChannelOptions = list[tuple[str, int]]


def shared_options(max_message_mib: int) -> ChannelOptions:
    """Message and metadata limits (error details travel as metadata) and pings every 30 s, also between calls."""
    max_bytes = max_message_mib * 1024 * 1024
    return [
        ("grpc.max_send_message_length", max_bytes),
        ("grpc.max_receive_message_length", max_bytes),
        ("grpc.max_metadata_size", _METADATA_BYTES),
        ("grpc.absolute_max_metadata_size", _METADATA_BYTES),
        ("grpc.keepalive_time_ms", _PING_MILLISECONDS),
        ("grpc.keepalive_timeout_ms", _PING_ANSWER_MILLISECONDS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]


def server_options(max_message_mib: int) -> ChannelOptions:
    """The server's options: it allows the clients' pings and never shares its port with another process."""
    return [
        *shared_options(max_message_mib),
        ("grpc.http2.min_ping_interval_without_data_ms", _PING_MILLISECONDS // 2),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", _PING_MILLISECONDS // 2),
        ("grpc.so_reuseport", 0),
    ]


class TlsFiles:
    """Certificate, key and CA of one end of mutual TLS."""

    def __init__(self, cert_file: Path, key_file: Path, ca_file: Path) -> None:
        self._cert = _read(cert_file)
        self._key = _read(key_file)
        self._ca = _read(ca_file)

    def server(self) -> grpc.ServerCredentials:
        """Credentials of a server that asks each client for a certificate signed by the CA."""
        return grpc.ssl_server_credentials([(self._key, self._cert)], self._ca, require_client_auth=True)

    def client(self) -> grpc.ChannelCredentials:
        """Credentials of a client that shows its certificate and accepts servers signed by the CA."""
        return grpc.ssl_channel_credentials(self._ca, self._key, self._cert)


def tls_files(cert_file: Path | None, key_file: Path | None, ca_file: Path | None) -> TlsFiles | None:
    """The TLS files, or None when no file is named. Raises ConfigError when only some are, or one can't be read."""
    if cert_file is None and key_file is None and ca_file is None:
        return None
    if cert_file is None or key_file is None or ca_file is None:
        raise ConfigError(
            "mutual TLS needs all of VIDEOTREE_TLS_CERT_FILE, VIDEOTREE_TLS_KEY_FILE and VIDEOTREE_TLS_CA_FILE, or none"
        )
    return TlsFiles(cert_file, key_file, ca_file)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"can't read the TLS file {path}: {error.strerror or error}") from error
