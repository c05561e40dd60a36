# SPDX-License-Identifier: GPL-3.0-or-later
"""Talks to `gradb mcp` with the official client of the Model Context Protocol (PyPI: mcp); run by test_mcp.py with the
Python of build/tools-venv. Arguments: auto or legacy, then gradb and its arguments. Prints one JSON object."""
import asyncio
import json
import os
import sys

from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def find_the_fault(client):
    """What is wrong with the demo's training: at most six calls."""
    calls = []

    async def call(name, **arguments):
        result = await client.call_tool(name, arguments)
        calls.append({"name": name, "error": bool(result.is_error), "text": result.content[0].text,
                      "record": result.structured_content})
        return calls[-1]

    await call("watch", condition="TO", on="all")
    stop = await call("continue", timeout_s=50)
    while stop["record"].get("still_running") and len(calls) < 4:
        stop = await call("wait", timeout_s=50)
    await call("why")
    await call("history", tensor="loss", steps=3)
    return calls


async def main(mode, command):
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(stdio_client(server), mode=mode) as client:
        tools, cursor, pages = [], None, 0
        while pages == 0 or cursor:
            page = await client.list_tools(cursor=cursor)
            tools += page.tools
            cursor = page.next_cursor
            pages += 1
        calls = await find_the_fault(client)
        graph = await client.read_resource("gradb://graph")
        hits = await client.read_resource("gradb://hits")
        print(json.dumps({
            "version": client.protocol_version,
            "pages": pages,
            "tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools],
            "calls": calls,
            "resources": [str(r.uri) for r in (await client.list_resources()).resources],
            "templates": [t.uri_template for t in (await client.list_resource_templates()).resource_templates],
            "graph": json.loads(graph.contents[0].text),
            "hits": json.loads(hits.contents[0].text),
        }))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
