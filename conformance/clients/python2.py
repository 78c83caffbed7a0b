"""Runs the story with version 2 of the Python SDK, which speaks the later era."""

import sys
from contextlib import asynccontextmanager

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

import story


class StoryClient:
    def __init__(self, client, opened):
        self.client, self.opened = client, opened

    async def tools(self):
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name, arguments):
        answer = await self.client.call_tool(name, arguments)
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
        async with self.client.listen(resource_subscriptions=[uri]) as updates:

            async def has_changed():
                with anyio.move_on_after(0.05):
                    async for event in updates:
                        return event.uri == uri
                return False

            yield has_changed


async def main(transport, address):
    if transport == "http":
        async with httpx2.AsyncClient(headers=story.bearer(), timeout=60) as http:
            await run_story(streamable_http_client(address, http_client=http))
    else:
        await run_story(StdioServerParameters(command=address, args=["mcp"], env=story.environment()))


async def run_story(server):
    opened = []

    async def open_link(_, params):
        opened.append(params.url)
        return ElicitResult(action="accept")

    async with Client(server, mode="2026-07-28", elicitation_callback=open_link) as client:
        assert client.protocol_version == "2026-07-28", client.protocol_version
        await story.run(StoryClient(client, opened))


anyio.run(main, *sys.argv[1:])
