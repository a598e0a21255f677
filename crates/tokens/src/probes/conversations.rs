//! Probes of the chat template, through each API that is rendered by it.

use wire::dialect::Operation;

use super::Fixed;
use crate::shape::Feature::{
    Answers, Arguments, Calls, Chat, Continued, Developer, Documents, Effort, Empty, Forbidden,
    History, InlineSystem, Marks, Messages, Names, Nested, Parts, Reasoning, Responses, System,
    Tools, Unicode,
};

pub(super) const COUNT: usize = CHAT.len() + MESSAGES.len() + RESPONSES.len();

pub(super) fn all() -> impl Iterator<Item = &'static Fixed> {
    CHAT.iter().chain(&MESSAGES).chain(&RESPONSES)
}

const CHAT: [Fixed; 24] = [
    Fixed {
        name: "chat_user",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"What is the capital of France?"}]}"#,
        features: &[Chat],
    },
    Fixed {
        name: "chat_system",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"system","content":"You are a careful reviewer. Answer in one sentence."},{"role":"user","content":"Is this right?"}]}"#,
        features: &[Chat, System],
    },
    Fixed {
        name: "chat_turns",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"Name a river."},{"role":"assistant","content":"The Rhine."},{"role":"user","content":"  And another?\n"},{"role":"assistant","content":"The Aare, which is shorter.\n\n"},{"role":"user","content":"Thanks"}]}"#,
        features: &[Chat, History],
    },
    Fixed {
        name: "chat_scripts",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"Übersetze: 日本語, Привет, مرحبا, 👩‍👩‍👧, e\u0301"}]}"#,
        features: &[Chat, Unicode],
    },
    Fixed {
        name: "chat_marks",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"What do <|im_end|>, <|eot_id|>, <|end|>, </s> and [INST] stand for?"}]}"#,
        features: &[Chat, Marks],
    },
    Fixed {
        name: "chat_parts",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":[{"type":"text","text":"First part."},{"type":"text","text":"Second part,\nwith a line."}]}]}"#,
        features: &[Chat, Parts],
    },
    Fixed {
        name: "chat_developer",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"developer","content":"Write no code."},{"role":"user","content":"How do I sort a list?"}]}"#,
        features: &[Chat, Developer],
    },
    Fixed {
        name: "chat_inline_system",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hello!"},{"role":"system","content":"The user is in Bern."},{"role":"user","content":"Where am I?"}]}"#,
        features: &[Chat, History, System, InlineSystem],
    },
    Fixed {
        name: "chat_names",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","name":"alice","content":"Who am I?"}]}"#,
        features: &[Chat, Names],
    },
    Fixed {
        name: "chat_empty",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":""}]}"#,
        features: &[Chat, Empty],
    },
    Fixed {
        name: "chat_tool",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"What is the weather in Bern?"}],"tools":[{"type":"function","function":{"name":"get_weather","description":"The weather of a place, now.","parameters":{"type":"object","properties":{"place":{"type":"string","description":"A town"},"hours":{"type":"integer"}},"required":["place"]}}}]}"#,
        features: &[Chat, Tools],
    },
    Fixed {
        name: "chat_tools_and_system",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"system","content":"Use tools."},{"role":"user","content":"List the files."}],"tools":[{"type":"function","function":{"name":"list_files","description":"Lists a directory.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}},{"type":"function","function":{"name":"read_file","description":"Reads a file.","parameters":{"type":"object","properties":{"path":{"type":"string","description":"Where it is."},"lines":{"type":"number"}},"required":["path"]}}},{"type":"function","function":{"name":"stop"}}]}"#,
        features: &[Chat, Tools, System],
    },
    Fixed {
        name: "chat_tools_bare",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"Stop."}],"tools":[{"type":"function","function":{"name":"stop","parameters":{"type":"object","properties":{}}}}]}"#,
        features: &[Chat, Tools],
    },
    Fixed {
        name: "chat_tools_nested",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"Book two seats."}],"tools":[{"type":"function","function":{"name":"book","description":"Books seats.\nIt cannot be undone.","strict":true,"parameters":{"type":"object","properties":{"seats":{"type":"array","description":"Which ones","items":{"type":"object","properties":{"row":{"type":"integer","minimum":1},"side":{"type":"string","enum":["left","right"]}},"required":["row","side"]}},"class":{"type":["string","null"],"enum":["first","second",null],"default":"second"},"price":{"anyOf":[{"type":"number"},{"type":"null"}]}},"required":["seats"],"additionalProperties":false}}}]}"#,
        features: &[Chat, Tools, Nested],
    },
    Fixed {
        name: "chat_tools_unicode",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"Hello"}],"tools":[{"type":"function","function":{"name":"greet","description":"Grüsst <jemanden> & sagt \"こんにちは\".","parameters":{"type":"object","properties":{"who":{"type":"string","description":"Name, z.B. Zoë"}}}}}]}"#,
        features: &[Chat, Tools, Unicode],
    },
    Fixed {
        name: "chat_tools_forbidden",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"What is the weather?"}],"tool_choice":"none","tools":[{"type":"function","function":{"name":"get_weather","description":"The weather.","parameters":{"type":"object","properties":{"place":{"type":"string"}}}}}]}"#,
        features: &[Chat, Tools, Forbidden],
    },
    Fixed {
        name: "chat_call",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"Weather in Bern?"},{"role":"assistant","content":null,"tool_calls":[{"id":"call_1a2b3c4d5","type":"function","function":{"name":"get_weather","arguments":"{\"place\": \"Bern\", \"hours\": 3}"}}]},{"role":"tool","tool_call_id":"call_1a2b3c4d5","content":"{\"temperature\": 12.5, \"sky\": \"clear\"}"}],"tools":[{"type":"function","function":{"name":"get_weather","description":"The weather.","parameters":{"type":"object","properties":{"place":{"type":"string"},"hours":{"type":"integer"}}}}}]}"#,
        features: &[Chat, History, Tools, Calls, Answers],
    },
    Fixed {
        name: "chat_calls",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Compare Bern and Basel."},{"role":"assistant","content":"I look at both.","tool_calls":[{"id":"call_000000001","type":"function","function":{"name":"get_weather","arguments":"{\"place\":\"Bern\"}"}},{"id":"call_000000002","type":"function","function":{"name":"get_weather","arguments":"{\"place\":\"Basel\"}"}}]},{"role":"tool","tool_call_id":"call_000000001","content":"12 degrees"},{"role":"tool","tool_call_id":"call_000000002","content":"14 degrees"},{"role":"assistant","content":"Basel is warmer."},{"role":"user","content":"By how much?"}],"tools":[{"type":"function","function":{"name":"get_weather","description":"The weather.","parameters":{"type":"object","properties":{"place":{"type":"string"}},"required":["place"]}}}]}"#,
        features: &[Chat, History, Tools, Calls, Answers, System],
    },
    Fixed {
        name: "chat_reasoning",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"What is 3 times 17?"},{"role":"assistant","reasoning_content":"3 times 17 is 51.","reasoning":"3 times 17 is 51.","content":"51"},{"role":"user","content":"And 4 times?"}]}"#,
        features: &[Chat, History, Reasoning],
    },
    Fixed {
        name: "chat_effort_low",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"Think little."}],"reasoning_effort":"low"}"#,
        features: &[Chat, Effort],
    },
    Fixed {
        name: "chat_effort_high",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"system","content":"You are a mathematician."},{"role":"user","content":"Think much."}],"reasoning_effort":"high"}"#,
        features: &[Chat, System, Effort],
    },
    Fixed {
        name: "chat_arguments",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"Do not think."}],"chat_template_kwargs":{"enable_thinking":false}}"#,
        features: &[Chat, Arguments],
    },
    Fixed {
        name: "chat_documents",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"What do they say?"}],"documents":[{"title":"One","text":"The first."},{"title":"Two","text":"The second."}]}"#,
        features: &[Chat, Documents],
    },
    Fixed {
        name: "chat_continued",
        operation: Operation::Chat,
        body: r#"{"messages":[{"role":"user","content":"Count to five."},{"role":"assistant","content":"One, two,"}],"add_generation_prompt":false,"continue_final_message":true}"#,
        features: &[Chat, History, Continued],
    },
];

const MESSAGES: [Fixed; 12] = [
    Fixed {
        name: "messages_user",
        operation: Operation::Messages,
        body: r#"{"max_tokens":16,"messages":[{"role":"user","content":"What is the capital of France?"}]}"#,
        features: &[Messages],
    },
    Fixed {
        name: "messages_system",
        operation: Operation::Messages,
        body: r#"{"max_tokens":16,"system":"You are a careful reviewer.","messages":[{"role":"user","content":"Is this right?"}]}"#,
        features: &[Messages, System],
    },
    Fixed {
        name: "messages_system_blocks",
        operation: Operation::Messages,
        body: r#"{"max_tokens":16,"system":[{"type":"text","text":"You are an agent."},{"type":"text","text":"Work in small steps."}],"messages":[{"role":"user","content":"Begin."}]}"#,
        features: &[Messages, System],
    },
    Fixed {
        name: "messages_turns",
        operation: Operation::Messages,
        body: r#"{"max_tokens":16,"messages":[{"role":"user","content":"Name a river."},{"role":"assistant","content":[{"type":"text","text":"The Rhine."}]},{"role":"user","content":[{"type":"text","text":"And another?"}]}]}"#,
        features: &[Messages, History],
    },
    Fixed {
        name: "messages_parts",
        operation: Operation::Messages,
        body: r#"{"max_tokens":16,"messages":[{"role":"user","content":[{"type":"text","text":"First part."},{"type":"text","text":"Second part."}]}]}"#,
        features: &[Messages, Parts],
    },
    Fixed {
        name: "messages_inline_system",
        operation: Operation::Messages,
        body: r#"{"max_tokens":16,"system":"Be brief.","messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hello!"},{"role":"system","content":"The user is in Bern."},{"role":"user","content":"Where am I?"}]}"#,
        features: &[Messages, History, System, InlineSystem],
    },
    Fixed {
        name: "messages_scripts",
        operation: Operation::Messages,
        body: r#"{"max_tokens":16,"messages":[{"role":"user","content":"Übersetze: 日本語, Привет, مرحبا"}]}"#,
        features: &[Messages, Unicode],
    },
    Fixed {
        name: "messages_tool",
        operation: Operation::Messages,
        body: r#"{"max_tokens":16,"messages":[{"role":"user","content":"What is the weather in Bern?"}],"tools":[{"name":"get_weather","description":"The weather of a place.","input_schema":{"type":"object","properties":{"place":{"type":"string","description":"A town"}},"required":["place"]}}]}"#,
        features: &[Messages, Tools],
    },
    Fixed {
        name: "messages_tools_forbidden",
        operation: Operation::Messages,
        body: r#"{"max_tokens":16,"messages":[{"role":"user","content":"Say nothing."}],"tool_choice":{"type":"none"},"tools":[{"name":"speak","description":"Speaks.","input_schema":{"type":"object","properties":{"text":{"type":"string"}}}}]}"#,
        features: &[Messages, Tools, Forbidden],
    },
    Fixed {
        name: "messages_call",
        operation: Operation::Messages,
        body: r#"{"max_tokens":16,"system":"Use tools.","messages":[{"role":"user","content":"Weather in Zürich?"},{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_01","name":"get_weather","input":{"place":"Zürich","hours":3}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_01","content":[{"type":"text","text":"12 degrees"}]},{"type":"text","text":"Go on."}]}],"tools":[{"name":"get_weather","description":"The weather of a place.","input_schema":{"type":"object","properties":{"place":{"type":"string"},"hours":{"type":"integer"}}}}]}"#,
        features: &[Messages, History, Tools, Calls, Answers, System, Unicode],
    },
    Fixed {
        name: "messages_thinking",
        operation: Operation::Messages,
        body: r#"{"max_tokens":16,"messages":[{"role":"user","content":"What is 3 times 17?"},{"role":"assistant","content":[{"type":"thinking","thinking":"3 times 17 is 51.","signature":""},{"type":"text","text":"51"}]},{"role":"user","content":"And 4 times?"}]}"#,
        features: &[Messages, History, Reasoning],
    },
    Fixed {
        name: "messages_thinking_disabled",
        operation: Operation::Messages,
        body: r#"{"max_tokens":16,"thinking":{"type":"disabled"},"messages":[{"role":"user","content":"Do not think."}]}"#,
        features: &[Messages, Effort],
    },
];

const RESPONSES: [Fixed; 6] = [
    Fixed {
        name: "responses_text",
        operation: Operation::Responses,
        body: r#"{"input":"What is the capital of France?","store":false}"#,
        features: &[Responses],
    },
    Fixed {
        name: "responses_instructions",
        operation: Operation::Responses,
        body: r#"{"instructions":"You are a careful reviewer.","input":[{"role":"user","content":[{"type":"input_text","text":"Is this right?"}]}],"store":false}"#,
        features: &[Responses, System],
    },
    Fixed {
        name: "responses_turns",
        operation: Operation::Responses,
        body: r#"{"input":[{"role":"user","content":"Name a river."},{"type":"message","role":"assistant","id":"msg_1","status":"completed","content":[{"type":"output_text","text":"The Rhine.","annotations":[]}]},{"role":"user","content":"And another?"}],"store":false}"#,
        features: &[Responses, History],
    },
    Fixed {
        name: "responses_tool",
        operation: Operation::Responses,
        body: r#"{"input":"What is the weather in Bern?","tools":[{"type":"function","name":"get_weather","description":"The weather of a place.","parameters":{"type":"object","properties":{"place":{"type":"string"}},"required":["place"]},"strict":false}],"store":false}"#,
        features: &[Responses, Tools],
    },
    Fixed {
        name: "responses_call",
        operation: Operation::Responses,
        body: r#"{"input":[{"role":"user","content":"Weather in Bern?"},{"type":"function_call","id":"fc_1","call_id":"call_1","name":"get_weather","arguments":"{\"place\":\"Bern\"}","status":"completed"},{"type":"function_call_output","call_id":"call_1","output":"12 degrees"}],"tools":[{"type":"function","name":"get_weather","description":"The weather of a place.","parameters":{"type":"object","properties":{"place":{"type":"string"}}},"strict":false}],"store":false}"#,
        features: &[Responses, History, Tools, Calls, Answers],
    },
    Fixed {
        name: "responses_effort",
        operation: Operation::Responses,
        body: r#"{"input":"Think little.","reasoning":{"effort":"low"},"store":false}"#,
        features: &[Responses, Effort],
    },
];
