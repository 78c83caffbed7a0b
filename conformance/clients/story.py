"""The story that every Python client tells; `client` hides what differs between them."""

import json
import os
import time

PATIENCE_S = 60


async def tell(client):
    tools = await client.tools()
    for name in ("schedule_create", "run_start", "run_wait"):
        assert name in tools, f"no tool {name}"
    # Of its own, as the same words would be the same schedule.
    asked = {"name": f"story-{os.getpid()}", "agent": "echo", "prompt": "say hello", "every": "1000h"}
    schedule = (await ok(client, "schedule_create", asked))["schedule"]["id"]
    start = {"schedule_id": schedule, "idempotency_key": f"story-{schedule}"}
    run = (await ok(client, "run_start", start))["run"]["id"]
    assert (await ok(client, "run_start", start))["run"]["id"] == run, "the same key is the same run"
    news = await ok(client, "run_wait", {"run_id": run})
    while not news["ended"]:
        news = await ok(client, "run_wait", {"run_id": run, "cursor": news["cursor"]})
    assert news["run"]["state"] == "done", news
    assert "say hello" in await client.read(f"midwatch://run/{run}")

    is_error, missing = await client.call("run_get", {"run_id": "run_none"})
    assert is_error and missing["error"]["code"] == "not_found", missing
    assert await client.code_of("no_such_tool") == -32602

    # What only a human decides: the client opens the page for them, and says yes for them in vain.
    outside = {"name": f"outside-{os.getpid()}", "agent": "outside", "prompt": "tell them", "every": "1000h"}
    waits = (await ok(client, "schedule_create", outside))["schedule"]["id"]
    start = {"schedule_id": waits, "idempotency_key": f"story-{waits}"}
    waiting = (await ok(client, "run_start", start))["run"]["id"]
    approval, deadline = None, time.monotonic() + PATIENCE_S
    while not approval:
        assert time.monotonic() < deadline, "it waits for nobody"
        approval = (await ok(client, "run_get", {"run_id": waiting}))["run"].get("approval_id")
    called = await ok(client, "approval_call_human", {"id": approval})
    assert called["waiting"] and client.opened == [called["link"]], (called, client.opened)
    shown = await ok(client, "approval_get", {"id": approval})
    assert shown["approval"]["state"] == "pending", shown
    cancelled = await ok(client, "run_cancel", {"run_id": waiting})
    assert cancelled["run"]["state"] == "cancelled", cancelled

    uri = f"midwatch://schedule/{schedule}"
    deadline = time.monotonic() + PATIENCE_S
    async with client.follow(uri) as has_come:
        # What happened before the first look is no news, so it happens until there are some.
        paused = False
        while not await has_come():
            assert time.monotonic() < deadline, "no news came"
            await ok(client, "schedule_resume" if paused else "schedule_pause", {"id": schedule})
            paused = not paused


async def ok(client, name, asked):
    is_error, said = await client.call(name, asked)
    assert not is_error, f"{name}: {json.dumps(said)}"
    return said


def bearer():
    return {"Authorization": f"Bearer {os.environ['MIDWATCH_TOKEN']}"}


def environment():
    return {**os.environ, "MIDWATCH_TOKEN": ""}
