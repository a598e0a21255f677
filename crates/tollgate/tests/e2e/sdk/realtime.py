"""OpenAI's SDK on the Realtime API through the gate, in front of a server that follows the public documentation.

In: {"listen": the server's port, "base_url", "model", "kept": the model of another route}. Prints the checks that passed, what the server
was asked, and what each answer used by its own count. An unexpected result ends the script.
"""

import asyncio
import base64
import json
import sys
import urllib.parse

import openai
from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

given = json.load(sys.stdin)
address = given["base_url"] + "/v1"
socket = "ws" + address.removeprefix("http")
MODEL = given["model"]
shown, seen, served = [], [], []
# 100 ms of silence, as PCM of 24 kHz.
PIECE = base64.b64encode(bytes(4800)).decode()


class Session:
    """One session of the server's: what it heard, and the answers that it makes."""

    def __init__(self, socket, model):
        self.socket, self.model = socket, model
        self.vad, self.transcription, self.is_mute = False, None, False
        self.pieces, self.answers, self.said, self.active = 0, 0, 0, False

    async def tell(self, kind, **members):
        await self.socket.send(json.dumps({"type": kind, "event_id": f"event_{len(served)}", **members}))

    def setup(self):
        of_input = {"transcription": self.transcription, "turn_detection": {"type": "server_vad"} if self.vad else None}
        return {"type": "realtime", "object": "realtime.session", "id": "sess_1", "model": self.model, "audio": {"input": of_input}}

    async def answer(self, text, is_cut=False, **of):
        self.answers += 1
        n = self.answers
        id = f"resp_{n}"
        head = {"object": "realtime.response", "id": id, "status": "in_progress", "output": [], "usage": None, **of}
        await self.tell("response.created", response=head)
        for word in text.split():
            await self.tell(
                "response.output_text.delta", response_id=id, item_id="i", output_index=0, content_index=0, delta=word + " "
            )
        await self.tell("response.output_audio.delta", response_id=id, item_id="i", output_index=0, content_index=1, delta=PIECE)
        if is_cut:
            return
        audio, cached = 10 * self.pieces, 20 * (n - 1)
        usage = {
            "input_tokens": 100 * n + audio,
            "output_tokens": 30 + n,
            "total_tokens": 100 * n + audio + 30 + n,
            "input_token_details": {
                "text_tokens": 100 * n,
                "audio_tokens": audio,
                "image_tokens": 0,
                "cached_tokens": cached,
                "cached_tokens_details": {"text_tokens": cached, "audio_tokens": 0, "image_tokens": 0},
            },
            "output_token_details": {"text_tokens": 10, "audio_tokens": 20 + n},
        }
        served.append([self.model, usage["input_tokens"], usage["output_tokens"], cached, audio, 20 + n])
        await self.tell("response.done", response={**head, "status": "completed", "usage": usage})

    async def hear(self, event):
        kind = event["type"]
        if kind in ("session.update", "transcription_session.update"):
            of_input = event["session"].get("audio", {}).get("input", {})
            self.transcription = of_input.get("transcription", self.transcription)
            self.vad = bool(of_input.get("turn_detection"))
            self.is_mute = (of_input.get("turn_detection") or {}).get("create_response") is False
            await self.tell("session.updated", session=self.setup())
        elif kind == "conversation.item.create":
            await self.tell("conversation.item.added", item={**event["item"], "id": "i"}, previous_item_id=None)
        elif kind == "input_audio_buffer.append":
            self.pieces += 1
            if self.vad and self.pieces % 3 == 0:
                await self.spoken()
        elif kind == "response.create":
            if (event.get("response") or {}).get("instructions") == "be refused":
                error = {"type": "invalid_request_error", "code": "conversation_already_has_active_response"}
                error |= {"message": "Conversation already has an active response", "event_id": event.get("event_id")}
                await self.tell("error", error=error)
            elif (event.get("response") or {}).get("instructions") == "break off":
                await self.answer("half an", is_cut=True)
                self.socket.transport.abort()
            else:
                await self.answer("as you asked")

    async def spoken(self):
        """Somebody stopped to speak: the server answers by itself, and writes down what was said."""
        await self.tell("input_audio_buffer.speech_stopped", audio_end_ms=300, item_id="u")
        await self.tell("input_audio_buffer.committed", item_id="u", previous_item_id=None)
        if (self.transcription or {}).get("prompt") == "without end":
            for word in ["so ", "it ", "goes "]:
                kind = "conversation.item.input_audio_transcription.delta"
                await self.tell(kind, item_id="u", content_index=0, delta=word)
        elif self.transcription:
            details = {"audio_tokens": 25, "text_tokens": 5}
            usage = {"type": "tokens", "input_tokens": 30, "output_tokens": 7, "total_tokens": 37, "input_token_details": details}
            served.append([self.transcription["model"], 30, 7, None, 25, None])
            await self.tell(
                "conversation.item.input_audio_transcription.completed",
                item_id="u",
                content_index=0,
                transcript="well",
                usage=usage,
            )
        if not self.is_mute:
            await self.answer("by myself")


async def service(socket):
    request = socket.request
    path, _, query = request.path.partition("?")
    seen.append(
        {
            "path": path,
            "query": dict(urllib.parse.parse_qsl(query)),
            "authorization": request.headers.get_all("authorization"),
            "protocols": ", ".join(request.headers.get_all("sec-websocket-protocol")),
            "workload": request.headers.get("x-workload-app"),
        }
    )
    session = Session(socket, dict(urllib.parse.parse_qsl(query)).get("model", "the-default"))
    await session.tell("session.created", session=session.setup())
    try:
        async for message in socket:
            await session.hear(json.loads(message))
    except ConnectionClosed:
        pass


def client_of(workload):
    return openai.AsyncOpenAI(
        base_url=address,
        websocket_base_url=socket,
        api_key="client-key",
        default_headers={"x-workload-app": workload},
        max_retries=0,
        timeout=120,
    ).realtime


async def until(connection, *kinds):
    events = []
    async for event in connection:
        events.append(event)
        if event.type in kinds:
            return events
    raise AssertionError((kinds, events))


async def open_session():
    async with client_of("open").connect(model=MODEL) as connection:
        created = (await until(connection, "session.created"))[-1]
        assert created.session.model == "its-realtime", created
        await connection.session.update(session={"type": "realtime", "model": MODEL, "instructions": "be short"})
        await until(connection, "session.updated")
        item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}
        await connection.conversation.item.create(item=item)
        await connection.response.create()
        events = await until(connection, "response.done")
        text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
        assert text == "as you asked ", events
        assert any(event.type == "response.output_audio.delta" and event.delta == PIECE for event in events), events
        usage = events[-1].response.usage
        assert (usage.input_tokens, usage.output_tokens) == (100, 31), usage
        shown.append("answered")

        # A session has one model, and its client's rules say which.
        await connection.session.update(session={"type": "realtime", "model": "another"}, event_id="mine")
        refused = (await until(connection, "error"))[-1].error
        assert (refused.code, refused.event_id) == ("model_not_found", "mine"), refused
        await connection.session.update(session={"type": "realtime", "model": "scribe"})
        refused = (await until(connection, "error"))[-1].error
        assert refused.code == "realtime_event_refused" and "of its address" in refused.message, refused
        transcription = {"audio": {"input": {"transcription": {"model": "another"}}}}
        await connection.session.update(session={"type": "realtime", **transcription})
        refused = (await until(connection, "error"))[-1].error
        assert refused.code == "model_not_found", refused
        tool = {"type": "mcp", "server_label": "files", "connector_id": "connector_dropbox"}
        await connection.session.update(session={"type": "realtime", "tools": [tool]})
        refused = (await until(connection, "error"))[-1].error
        assert (refused.code, refused.param) == ("account_shared", "connector_id"), refused
        await connection.send({"type": "response.steer"})
        refused = (await until(connection, "error"))[-1].error
        assert refused.code == "realtime_event_refused" and "response.steer" in refused.message, refused
        await connection.response.create(response={"instructions": "be refused"}, event_id="that one")
        refused = (await until(connection, "error"))[-1].error
        assert refused.code == "conversation_already_has_active_response", refused
        assert refused.event_id == "that one", refused
        shown.append("refused")

        # From here on the server answers by itself, and has what is said written down.
        of_input = {"turn_detection": {"type": "server_vad"}, "transcription": {"model": "scribe"}}
        await connection.session.update(session={"type": "realtime", "audio": {"input": of_input}})
        await until(connection, "session.updated")
        for _ in range(3):
            await connection.input_audio_buffer.append(audio=PIECE)
        events = await until(connection, "response.done")
        kinds = [event.type for event in events]
        assert "conversation.item.input_audio_transcription.completed" in kinds, kinds
        assert events[-1].response.usage.input_token_details.audio_tokens == 30, events[-1]
        shown.append("by_itself")


async def tight_session():
    async with client_of("tight").connect(model=MODEL) as connection:
        await until(connection, "session.created")
        for _ in range(2):
            await connection.response.create()
            await until(connection, "response.done")
        await connection.response.create(event_id="third")
        limited = (await until(connection, "error", "response.done"))[-1]
        assert limited.type == "error", limited
        assert (limited.error.code, limited.error.event_id) == ("rate_limit_exceeded", "third"), limited
        shown.append("limited")
        of_input = {"turn_detection": {"type": "server_vad"}}
        await connection.session.update(session={"type": "realtime", "audio": {"input": of_input}})
        await until(connection, "session.updated")
        for _ in range(3):
            await connection.input_audio_buffer.append(audio=PIECE)
        try:
            await until(connection, "never")
            raise AssertionError("a server that answers past a limit goes on")
        except ConnectionClosed as closed:
            assert closed.rcvd.code == 1008, closed
        except AssertionError as ended:
            [(kinds, events)] = ended.args
            assert events[-1].type == "error" and events[-1].error.code == "rate_limit_exceeded", events
        shown.append("ended_by_limit")


def mute(**transcription):
    vad = {"type": "server_vad", "create_response": False}
    of_input = {"turn_detection": vad, "transcription": {"model": "scribe", **transcription}}
    return {"type": "realtime", "audio": {"input": of_input}}


async def speak(connection):
    for _ in range(3):
        await connection.input_audio_buffer.append(audio=PIECE)


async def spent_session():
    """What a server wrote down costs what it does, also past a budget; who has nothing left opens no session."""
    written = "conversation.item.input_audio_transcription.completed"
    async with client_of("spent").connect(model=MODEL) as connection:
        await until(connection, "session.created")
        await connection.session.update(session=mute())
        await until(connection, "session.updated")
        await speak(connection)
        await until(connection, written)
        await speak(connection)
        refused = (await until(connection, "error"))[-1].error
        assert refused.code == "insufficient_quota", refused
    try:
        async with client_of("spent").connect(model=MODEL):
            raise AssertionError("a session opens for somebody who has nothing left")
    except InvalidStatus as refused:
        assert refused.response.status_code == 402, refused.response
    shown.append("owed")


async def left_session():
    """A client leaves while it is still written down what it said."""
    async with client_of("open").connect(model=MODEL) as connection:
        await until(connection, "session.created")
        await connection.session.update(session=mute(prompt="without end"))
        await until(connection, "session.updated")
        await speak(connection)
        await until(connection, "conversation.item.input_audio_transcription.delta")
    shown.append("left")


async def strict_session():
    """A client leaves with what was written down, before the row of that is on disk."""
    for _ in range(10):
        async with client_of("strict").connect(model=MODEL) as connection:
            await until(connection, "session.created")
            await connection.session.update(session=mute())
            await until(connection, "session.updated")
            await speak(connection)
            await until(connection, "conversation.item.input_audio_transcription.completed")
    shown.append("strict")


async def broken_session():
    async with client_of("open").connect(model=MODEL) as connection:
        await until(connection, "session.created")
        await connection.response.create(response={"instructions": "break off"})
        try:
            await until(connection, "response.done")
            raise AssertionError("what broke off goes on")
        except ConnectionClosed as closed:
            assert closed.rcvd is None or closed.rcvd.code == 1011, closed
        except AssertionError as ended:
            assert isinstance(ended.args[0], tuple), ended
        shown.append("broken")


async def from_a_page():
    """As a browser does, which can set no header: the key is a sub-protocol."""
    offered = ["realtime", "openai-insecure-api-key." + given["key"], "openai-project.p"]
    async with connect(f"{socket}/realtime?model={MODEL}", subprotocols=offered, compression=None) as page:
        assert page.subprotocol == "realtime", page.subprotocol
        assert json.loads(await page.recv())["type"] == "session.created"
        assert await (await page.ping()) >= 0
        await page.send(b"no text")
        try:
            while True:
                await page.recv()
        except ConnectionClosed as closed:
            assert closed.rcvd.code == 1003, closed
    shown.append("from_a_page")
    for query, protocols, status in [
        (f"model={MODEL}", ["realtime", "openai-insecure-api-key.wrong"], 401),
        (f"model={MODEL}", offered + ["openai-insecure-api-key.second"], 400),
        ("model=another", offered, 404),
        (f"model={MODEL}&model=another", offered, 400),
        (f"model={MODEL}&call_id=rtc_1", offered, 400),
    ]:
        try:
            async with connect(f"{socket}/realtime?{query}", subprotocols=protocols, compression=None):
                raise AssertionError((query, protocols, "is let in"))
        except InvalidStatus as refused:
            assert refused.response.status_code == status, (query, protocols, refused.response)
    shown.append("not_let_in")


async def ephemeral():
    try:
        await client_of("open").client_secrets.create(session={"type": "realtime"})
        raise AssertionError("a key that leads past the gate is handed out")
    except openai.NotFoundError as refused:
        assert refused.code == "operation_not_allowed", refused
    shown.append("ephemeral")


def chosen(_, offered):
    return "realtime" if "realtime" in offered else None


async def main():
    async with serve(service, "127.0.0.1", given["listen"], select_subprotocol=chosen, max_size=None):
        await open_session()
        await tight_session()
        await spent_session()
        await left_session()
        await strict_session()
        await broken_session()
        await from_a_page()
        await ephemeral()
    print(json.dumps({"shown": shown, "seen": seen, "served": served}))


asyncio.run(main())
