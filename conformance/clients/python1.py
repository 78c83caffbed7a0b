"""The story, told with the first Python SDK."""

import sys
from contextlib import asynccontextmanager

import anyio
from mcp import ClientSession, McpError, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp.types import ElicitResult, ResourceUpdatedNotification
from pydantic import AnyUrl

import story


class Told:
    def __init__(self, session, heard, opened):
        self.session, self.heard, self.opened = session, heard, opened

    async def tools(self):
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name, asked):
        answer = await self.session.call_tool(name, asked)
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

        async def has_come():
            await anyio.sleep(0)
            return uri in self.heard

        yield has_come
        # It does not bear news after it has left.
        await self.session.unsubscribe_resource(AnyUrl(uri))


async def main(how, where):
    heard, opened = set(), []

    async def open_link(_, asked):
        opened.append(asked.url)
        return ElicitResult(action="accept")

    async def hear(message):
        if isinstance(getattr(message, "root", None), ResourceUpdatedNotification):
            heard.add(str(message.root.params.uri))

    if how == "http":
        transport = streamablehttp_client(where, headers=story.bearer())
    else:
        parameters = StdioServerParameters(command=where, args=["mcp"], env=story.environment())
        transport = stdio_client(parameters)
    async with transport as (read, write, *_):
        callbacks = {"message_handler": hear, "elicitation_callback": open_link}
        async with ClientSession(read, write, **callbacks) as session:
            await session.initialize()
            await story.tell(Told(session, heard, opened))


anyio.run(main, *sys.argv[1:])
