"""The HTTP server: sorts requests into readings, changes and control. Nothing depends on host or port."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from moto.iam.models import get_account_id_from
from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import BaseWSGIServer, make_server
from werkzeug.wsgi import get_input_stream

from .guard import is_reading
from .settings import SettingsError
from .world import Reply, World

__all__ = ["Application", "account_of", "bound"]

_SCOPE = re.compile(r"Credential=([^/,\s]+)/\d+/([^/]+)/([^/]+)/aws4_request")


class Application:
    """The WSGI application over one world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def __call__(self, environment: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Answer one request."""
        reply = self._reply(environment)
        start_response(reply.status, reply.headers)
        return [reply.body]

    def _reply(self, environment: dict[str, Any]) -> Reply:
        path, method = environment.get("PATH_INFO", ""), environment["REQUEST_METHOD"]
        body = _body(environment)
        if path == "/sandbox/settings":
            return self._settings(method, body)
        if path == "/moto-api/reset" and method == "POST":
            self._world.reset()
            return _json(HTTPStatus.OK, {"status": "ok"})
        scope = _SCOPE.search(environment.get("HTTP_AUTHORIZATION", ""))
        if scope is None:
            return self._world.read(environment)
        key, region, service = scope.groups()
        account = environment.setdefault("HTTP_X_MOTO_ACCOUNT_ID", account_of(key))
        if service != "ec2":
            return self._world.read(environment)
        action = parse_qs(body).get("Action", [""])[0]
        return self._world.read(environment) if is_reading(action) else self._world.change(account, region, body)

    def _settings(self, method: str, body: str) -> Reply:
        if method == "GET":
            return _json(HTTPStatus.OK, self._world.settings.model_dump())
        if method != "PUT":
            return _json(HTTPStatus.METHOD_NOT_ALLOWED, {"error": "GET shows the settings, PUT changes those it names"})
        try:
            return _json(HTTPStatus.OK, self._world.set(json.loads(body)).model_dump())
        except SettingsError as error:
            return _json(HTTPStatus.BAD_REQUEST, {"error": str(error)})
        except json.JSONDecodeError as error:
            return _json(HTTPStatus.BAD_REQUEST, {"error": f"the body is not JSON: {error}"})


def bound(port: int, application: Application) -> BaseWSGIServer:
    """A server that listens on 127.0.0.1 already; `server_port` tells where. One thread per connection."""
    return make_server("127.0.0.1", port, application, threaded=True, request_handler=_Handler)


class _Handler(MotoRequestHandler):  # type: ignore[misc]  # moto has no types
    # Head and body go out in two writes: with Nagle's algorithm every answer would wait for an acknowledgement.
    disable_nagle_algorithm = True

    def log_request(self, *_: object) -> None:
        """One line per request would drown what matters."""


def account_of(key: str) -> str:
    """The account of an access key: a key of twelve digits is its own account, the others are as moto knows them."""
    return key if re.fullmatch(r"\d{12}", key) else str(get_account_id_from(key))


def _body(environment: dict[str, Any]) -> str:
    """What was sent, read to its end: a slow sender must not hold the world's lock. moto reads it again."""
    if environment["REQUEST_METHOD"] == "GET":
        return str(environment.get("QUERY_STRING", ""))
    data = get_input_stream(environment).read()
    environment["wsgi.input"], environment["CONTENT_LENGTH"] = io.BytesIO(data), str(len(data))
    return data.decode(errors="replace")


def _json(status: HTTPStatus, value: object) -> Reply:
    return Reply(f"{status.value} {status.phrase}", [("Content-Type", "application/json")], json.dumps(value).encode())
