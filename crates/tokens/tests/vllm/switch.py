"""A middleware for vLLM 0.32.0 that changes the server's chat template between two batches: `--middleware switch.template`.

`POST /switch` with `{"template": TEXT}` does what a restart with `--chat-template` would do; `{"named": {"default": TEXT, …}}` is what
`tokenizer_config.json` with a list of templates would do, and `{"named": TEXT}` the same with one. `defaults` is
`--default-chat-template-kwargs`. It is called while nothing else runs.

Invariant: only values are changed that vLLM sets from these options when it starts; what it works out from them at its start
(whether a system message inside of Anthropic's `messages` is merged, the effort of disabled thinking) is worked out again by its own
functions. Not here: tokenizers and parsers; for these vLLM is started again.
"""

import sys

from fastapi import Request
from fastapi.responses import JSONResponse


def holders(state):
    """Everything in the server's state that was given its chat template."""
    found = []
    for one in list(state._state.values()):
        for held in (one, getattr(one, "online_renderer", None)):
            if held is not None and hasattr(held, "chat_template") and held not in found:
                found.append(held)
    return found


def forget():
    """What vLLM remembers by a tokenizer whose own template is another one now."""
    for name, module in list(sys.modules.items()):
        if name.startswith("vllm.renderers"):
            for one in list(vars(module).values()):
                if callable(getattr(one, "cache_clear", None)):
                    one.cache_clear()
            getattr(module, "_CONTENT_FORMATS", {}).clear()


async def template(request: Request, call_next):
    if request.url.path != "/switch":
        return await call_next(request)
    asked = await request.json()
    state = request.app.state
    named = asked.get("named")
    renderer = state.online_renderer.renderer
    if "own" not in renderer.__dict__.setdefault("_switch", {}):
        renderer._switch["own"] = renderer.tokenizer.chat_template
    renderer.tokenizer.chat_template = named if named is not None else renderer._switch["own"]
    defaults = asked.get("defaults") or {}
    forget()
    told = []
    for held in holders(state):
        held.chat_template = None if named is not None else asked.get("template")
        for name in ("default_chat_template_kwargs",):
            if hasattr(held, name):
                setattr(held, name, defaults)
        if type(held).__name__ == "OpenAIServingResponses":
            held.chat_template_kwargs = defaults
        if hasattr(held, "_merge_inline_system"):
            held._merge_inline_system = held._should_merge_inline_system(state.online_renderer)
            held._disabled_thinking_effort = None
        told.append(type(held).__name__)
    return JSONResponse({"switched": told})
