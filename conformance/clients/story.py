"""The story that the clients of both Python SDKs run; `client` hides the differences between the SDKs."""

import json
import os
import time

TIMEOUT_S = 60


async def run(client):
    tools = await client.tools()
    for name in ("schedule_create", "run_start", "run_wait"):
        assert name in tools, f"no tool {name}"
    # A unique name: the same definition would be the same schedule.
    definition = {"name": f"story-{os.getpid()}", "agent": "echo", "prompt": "say hello", "every": "1000h"}
    schedule = (await ok(client, "schedule_create", definition))["schedule"]["id"]
    start = {"schedule_id": schedule, "idempotency_key": f"story-{schedule}"}
    run_id = (await ok(client, "run_start", start))["run"]["id"]
    assert (await ok(client, "run_start", start))["run"]["id"] == run_id, "the same key started a second run"
    progress = await ok(client, "run_wait", {"run_id": run_id})
    while not progress["ended"]:
        progress = await ok(client, "run_wait", {"run_id": run_id, "cursor": progress["cursor"]})
    assert progress["run"]["state"] == "done", progress
    assert "say hello" in await client.read(f"midwatch://run/{run_id}")

    is_error, missing = await client.call("run_get", {"run_id": "run_none"})
    assert is_error and missing["error"]["code"] == "not_found", missing
    assert await client.code_of("no_such_tool") == -32602

    # A tier-2 run needs approval: the client opens the page, and its own `accept` approves nothing.
    outside = {"name": f"outside-{os.getpid()}", "agent": "outside", "prompt": "tell them", "every": "1000h"}
    outside_id = (await ok(client, "schedule_create", outside))["schedule"]["id"]
    start = {"schedule_id": outside_id, "idempotency_key": f"story-{outside_id}"}
    waiting_id = (await ok(client, "run_start", start))["run"]["id"]
    approval, deadline = None, time.monotonic() + TIMEOUT_S
    while not approval:
        assert time.monotonic() < deadline, "no approval was requested"
        approval = (await ok(client, "run_get", {"run_id": waiting_id}))["run"].get("approval_id")
    called = await ok(client, "approval_call_human", {"approval_id": approval})
    assert called["waiting"] and client.opened == [called["link"]], (called, client.opened)
    shown = await ok(client, "approval_get", {"approval_id": approval})
    assert shown["approval"]["state"] == "pending", shown
    cancelled = await ok(client, "run_cancel", {"run_id": waiting_id})
    assert cancelled["run"]["state"] == "cancelled", cancelled

    uri = f"midwatch://schedule/{schedule}"
    deadline = time.monotonic() + TIMEOUT_S
    async with client.follow(uri) as has_changed:
        # Changes before the subscription are not notified, so change it until a notification comes.
        paused = False
        while not await has_changed():
            assert time.monotonic() < deadline, "no notification came"
            await ok(client, "schedule_resume" if paused else "schedule_pause", {"schedule_id": schedule})
            paused = not paused


async def ok(client, name, arguments):
    is_error, answer = await client.call(name, arguments)
    assert not is_error, f"{name}: {json.dumps(answer)}"
    return answer


def bearer():
    return {"Authorization": f"Bearer {os.environ['MIDWATCH_TOKEN']}"}


def environment():
    return {**os.environ, "MIDWATCH_TOKEN": ""}
