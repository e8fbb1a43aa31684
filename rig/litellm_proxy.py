"""LiteLLM in front of the engines: its proxy with the prometheus callback, on loopback.

It wants a key, drawn at random for each launch and handed on by environment variables alone. Its
/metrics would want the same key; a scraper has none, so that is switched off.
"""

import json
import secrets
from collections.abc import Sequence
from pathlib import Path

from rig.apart import program
from rig.gateway import Launch

MODEL = "rig"  # what the load asks for
READY = 120.0  # seconds; alone it takes 6
ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it fetches one from the internet
    "LITELLM_MODE": "PRODUCTION",  # no .env file of whoever calls
    "LITELLM_DONT_SHOW_FEEDBACK_BOX": "true",
    "DISABLE_ADMIN_UI": "True",
    "DO_NOT_TRACK": "1",
    "NO_COLOR": "1",
}
KEY = "LITELLM_MASTER_KEY"


def deployment(port: int) -> dict[str, object]:
    """One engine, spoken to as to any service with OpenAI's interface."""
    base = f"http://127.0.0.1:{port}/v1"
    parameters = {"model": f"openai/{MODEL}", "api_base": base, "api_key": "none"}
    return {"model_name": MODEL, "litellm_params": parameters}


def plan(folder: Path, port: int, admin_port: int, engines: Sequence[int]) -> Launch:
    """Write litellm.json, which is YAML as well, and run it with one worker."""
    settings = {
        "model_list": [deployment(engine) for engine in engines],
        "litellm_settings": {
            "callbacks": ["prometheus"],
            "require_auth_for_metrics_endpoint": False,
            "telemetry": False,
        },
        "general_settings": {"master_key": f"os.environ/{KEY}"},
    }
    config = folder / "litellm.json"
    config.write_text(json.dumps(settings, indent=2) + "\n")
    key = f"sk-{secrets.token_urlsafe(24)}"
    options = ("--config", str(config), "--host", "127.0.0.1", "--port", str(port))
    url = f"http://127.0.0.1:{port}"
    return Launch(
        name="litellm",
        command=(str(program("litellm", "litellm")), *options, "--telemetry", "False"),
        ready_url=f"{url}/health/liveliness",
        metrics_url=f"{url}/metrics/",  # without the slash it answers 307
        environment={**ENVIRONMENT, KEY: key},
        key=key,
    )
