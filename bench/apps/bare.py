"""A bare ASGI handler: reads the body and sends what toolgate sent, without looking at anything.

python -m bench.apps.bare ANSWERS.json PORT

ANSWERS is {"/path": {"headers": [["name", "value"]], "body": "…"}}.
"""

import json
import sys
from pathlib import Path
from typing import Any

from bench.apps.serving import serve


def app(file: Path) -> Any:
    answers = {
        path: (
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [(name.encode(), value.encode()) for name, value in one["headers"]],
            },
            {"type": "http.response.body", "body": one["body"].encode("latin-1")},
        )
        for path, one in json.loads(file.read_text()).items()
    }

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        while (await receive()).get("more_body", False):
            pass
        start, body = answers[scope["path"]]
        await send(start)
        await send(body)

    return answer


if __name__ == "__main__":
    serve(app(Path(sys.argv[1])), int(sys.argv[2]), lifespan="off")
