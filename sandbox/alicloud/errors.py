"""How Alibaba Cloud words errors: a document with Code, Message, RequestId, HostId and Recommend.

https://www.alibabacloud.com/help/en/sdk/product-overview/v3-request-structure-and-signature (RPC error responses) and
https://api.alibabacloud.com/document/Vpc/2016-04-28/errorCode.
"""

from __future__ import annotations

import uuid

from sandbox.clouds import Answer, Document, Refusal

__all__ = ["missing_parameter", "new_request_id", "refused", "wording"]

_HOST = "vpc.aliyuncs.com"
# The core's own words for what no vendor's handler refused.
_OWN = {"internalError": "InternalError", "notFound": "InvalidAction.NotFound"}


def new_request_id() -> str:
    """A request's id, as every answer carries one."""
    return str(uuid.uuid4()).upper()


def wording(status: int, code: str, message: str) -> Answer:
    """The answer that carries an error."""
    code = _OWN.get(code, code)
    request_id = new_request_id()
    document: Document = {
        "RequestId": request_id,
        "HostId": _HOST,
        "Code": code,
        "Message": message,
        "Recommend": f"https://api.alibabacloud.com/troubleshoot?q={code}&product=Vpc&requestId={request_id}",
    }
    return Answer(document, status)


def refused(status: int, code: str, message: str) -> Refusal:
    """A call that is refused."""
    return Refusal(wording(status, code, message))


def missing_parameter(name: str) -> Refusal:
    """400 for a parameter that is missing."""
    message = f'The input parameter "{name}" that is mandatory for processing this request is not supplied.'
    return refused(400, f"Missing{name}", message)
