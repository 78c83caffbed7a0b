"""Runs the story with version 1 of the Python SDK."""

import sys
from contextlib import asynccontextmanager

import anyio
from mcp import ClientSession, McpError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.types import ElicitResult, ResourceUpdatedNotification
from pydantic import AnyUrl

import story


class StoryClient:
    def __init__(self, session, updated, opened):
        self.session, self.updated, self.opened = session, updated, opened

    async def tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name, arguments):
        answer = await self.session.call_tool(name, arguments)
        return answer.isError, answer.structuredContent

    async def code_of(self, name):
        try:
            await self.session.call_tool(name, {})
        except McpError as error:
            return error.error.code

    async def read(self, uri):
        return (await self.session.read_resource(AnyUrl(uri))).contents[0].text

    @asynccontextmanager
    async def follow(self, uri):
        await self.session.subscribe_resource(AnyUrl(uri))

        async def has_changed():
            await anyio.sleep(0)
            return uri in self.updated

        yield has_changed
        # The session fails on notifications after it is closed.
        await self.session.unsubscribe_resource(AnyUrl(uri))


async def main(transport_name, address):
    updated, opened = set(), []

    async def open_link(_, params):
        opened.append(params.url)
        return ElicitResult(action="accept")

    async def on_message(message):
        if isinstance(getattr(message, "root", None), ResourceUpdatedNotification):
            updated.add(str(message.root.params.uri))

    if transport_name == "http":
        transport = streamablehttp_client(address, headers=story.bearer())
    else:
        parameters = StdioServerParameters(command=address, args=["mcp"], env=story.environment())
        transport = stdio_client(parameters)
    async with transport as (read, write, *_):
        callbacks = {"message_handler": on_message, "elicitation_callback": open_link}
        async with ClientSession(read, write, **callbacks) as session:
            await session.initialize()
            await story.run(StoryClient(session, updated, opened))


anyio.run(main, *sys.argv[1:])
