"""Hands requests of HTTP to servers in turn, each on a connection of its own: the next request of a client goes to the next server.
Connections that are upgraded, to WebSockets say, are none of it.

    round-robin.py PORT SERVER_PORT [SERVER_PORT ...]
"""

import asyncio
import itertools
import os
import signal
import sys

HEAD_MAX = 64 * 1024


async def copy(source, target):
    try:
        while data := await source.read(65536):
            target.write(data)
            await target.drain()
    except (ConnectionError, asyncio.CancelledError):
        pass


async def hand_on(ports, client, answer):
    try:
        head = await client.readuntil(b"\r\n\r\n")
        lines = [line for line in head[:-4].split(b"\r\n") if not line.lower().startswith(b"connection:")]
        server, request = await asyncio.open_connection("127.0.0.1", next(ports))
        # Both ends close behind the answer: a further request comes on a further connection.
        request.write(b"\r\n".join([*lines, b"Connection: close", b"", b""]))
        body = asyncio.create_task(copy(client, request))
        await copy(server, answer)
        body.cancel()
        request.close()
    except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as failure:
        if not isinstance(failure, asyncio.IncompleteReadError) or failure.partial:
            print(f"a request was not handed on: {failure!r}", file=sys.stderr)
    finally:
        answer.close()


async def main(port, servers):
    ports = itertools.cycle(servers)
    listener = await asyncio.start_server(lambda client, answer: hand_on(ports, client, answer), "127.0.0.1", port, limit=HEAD_MAX)
    async with listener:
        await listener.serve_forever()


signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
asyncio.run(main(int(sys.argv[1]), [int(port) for port in sys.argv[2:]]))
