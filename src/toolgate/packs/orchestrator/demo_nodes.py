"""Demo data of pack `orchestrator`: two nodes, and four models with their versions."""

from typing import Any

import orjson
from sqlalchemy import Table

from toolgate.packs.orchestrator.sql import tables

THEN = "2026-01-05T09:00:00.000000Z"
ID = "00000000-0000-4000-8000-0000000000{}"
CONFIG_VERSION = "01KE6P4YM00000000000000000"
LOCAL, SANDBOX = ID.format("e1"), ID.format("e2")
SNAPSHOT: dict[str, Any] = {
    "labels": ["sandbox_only", "region_us_east_1"],
    "compute": {"cpu_cores": 16, "memory_mb": 65536},
    "container_runtime": {"name": "podman", "version": "5.5.0"},
}


def _node(id: str, slug: str, name: str, metadata: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": id,
        "slug": slug,
        "display_name": name,
        "metadata": orjson.dumps(metadata).decode(),
        "drained": False,
        "config": "{}",
        "config_version": CONFIG_VERSION,
        "config_ack_version": None,
        "config_ack_at": None,
        "config_ack_status": None,
        "last_seen_at": None,
        "last_capability_at": None,
        "capabilities": None,
        "created_at": THEN,
        "updated_at": THEN,
    }


SEEN = {
    "config_ack_version": CONFIG_VERSION,
    "config_ack_at": THEN,
    "config_ack_status": "applied",
    "last_seen_at": THEN,
    "last_capability_at": THEN,
    "capabilities": orjson.dumps(SNAPSHOT).decode(),
}


def _on_sandbox(kind: str, name: str, version: str, status: str) -> dict[str, Any]:
    return {
        "node_id": SANDBOX,
        "kind": kind,
        "name": name,
        "version": version,
        "status": status,
        "reported_at": THEN,
    }


MODELS = (
    ("f1", "llama3", "Meta", "General purpose.", "8b", 8192, 4661211808),
    ("f2", "qwen2.5-coder", "Alibaba", "Writes and edits code.", "7b", 32768, 4683087332),
    ("f3", "qwen3.5:0.8b", "Alibaba", "Small and quick.", "0.8b", 32768, 522653767),
    ("f4", "llama-guard3", "Meta", "Tells unsafe texts from safe ones.", "1b", 8192, 1600000000),
)
"""Id, name, vendor, description, version, context length and size."""


def _model(id: str, name: str, vendor: str, text: str, *_: Any) -> dict[str, Any]:
    described = {"name": name, "vendor": vendor, "description": text}
    return {"id": ID.format(id), **described, "created_at": THEN, "updated_at": THEN}


def _version(id: str, name: str, _: str, __: str, version: str, length: int, ___: int) -> Any:
    capabilities = {"context_length": length, "tool_use": name != "llama-guard3", "vision": False}
    return {
        "model_id": ID.format(id),
        "version": version,
        "capabilities": orjson.dumps(capabilities).decode(),
        "default_parameters": '{"temperature":0.2}',
        "created_at": THEN,
    }


def _artifact(id: str, name: str, _: str, __: str, version: str, ___: int, size: int) -> Any:
    return {
        "id": ID.format("9" + id[1:]),
        "model_id": ID.format(id),
        "version": version,
        "artifact_type": "ollama",
        "sha256": id[1:] * 64,
        "size_bytes": size,
        "cache_path": f"models/{name}",
        "source_uri": f"ollama://registry.example.com/{name}",
        "created_at": THEN,
    }


ROWS: tuple[tuple[Table, list[dict[str, Any]]], ...] = (
    (
        tables.nodes,
        [
            _node(LOCAL, "worker-01", "Local worker 01", {}),
            _node(
                SANDBOX,
                "sandbox-us-east-1-01",
                "Sandbox us-east-1 01",
                {"labels": SNAPSHOT["labels"]},
            )
            | SEEN,
        ],
    ),
    (
        tables.availability,
        [
            _on_sandbox("image", "docker.io/library/python:3.12", "", "available"),
            _on_sandbox("image", "docker.io/library/node:22", "", "available"),
            _on_sandbox("model", "llama3", "8b", "available"),
            _on_sandbox("model", "qwen2.5-coder", "7b", "pulling"),
        ],
    ),
    (tables.models, [_model(*one) for one in MODELS]),
    (tables.model_versions, [_version(*one) for one in MODELS]),
    (tables.model_artifacts, [_artifact(*one) for one in MODELS]),
)
