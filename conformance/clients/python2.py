"""The story, told with the second Python SDK, which speaks the later era."""

import sys
from contextlib import asynccontextmanager

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

import story


class Told:
    def __init__(self, client, opened):
        self.client, self.opened = client, opened

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name, asked):
        answer = await self.client.call_tool(name, asked)
        return answer.is_error, answer.structured_content

    async def code_of(self, name):
        try:
            await self.client.call_tool(name, {})
        except MCPError as error:
            return error.error.code

    async def read(self, uri):
        return (await self.client.read_resource(uri)).contents[0].text

    @asynccontextmanager
    async def follow(self, uri):
        async with self.client.listen(resource_subscriptions=[uri]) as news:

            async def has_come():
                with anyio.move_on_after(0.05):
                    async for event in news:
                        return event.uri == uri
                return False

            yield has_come


async def main(how, where):
    if how == "http":
        async with httpx2.AsyncClient(headers=story.bearer(), timeout=60) as asking:
            await told(streamable_http_client(where, http_client=asking))
    else:
        await told(StdioServerParameters(command=where, args=["mcp"], env=story.environment()))


async def told(server):
    opened = []

    async def open_link(_, asked):
        opened.append(asked.url)
        return ElicitResult(action="accept")

    async with Client(server, mode="2026-07-28", elicitation_callback=open_link) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version
        await story.tell(Told(client, opened))


anyio.run(main, *sys.argv[1:])
