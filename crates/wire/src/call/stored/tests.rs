//! Which bodies name what the provider keeps, at every cut, and which only look as if they did.

use bytes::Bytes;
use testing::Draw;

use crate::call::{CallHead, Minds};
use crate::dialect::Operation::{
    self, Chat, Completions, CountContent, CountTokens, Embeddings, GenerateContent, ImageEdits,
    Images, InputTokens, Messages, Moderations, Rerank, Responses, Speech,
};

const STORED: Minds = Minds {
    stored: true,
    models: false,
};

fn in_pieces(operation: Operation, body: &str, cuts: &[usize]) -> Option<&'static str> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for cut in cuts.iter().copied().chain([body.len()]) {
        pieces.push(Bytes::copy_from_slice(&body.as_bytes()[from..cut]));
        from = cut;
    }
    let mut head = CallHead::default();
    head.look_inside(operation, STORED, &pieces);
    head.keeps
}

#[test]
fn every_id_that_a_body_can_name_is_found() {
    let table = [
        (
            ImageEdits,
            r#"{"model":"m","prompt":"x","images":[{"file_id":"file-1"}]}"#,
            "file_id",
        ),
        (
            Images,
            r#"{"prompt":"x","mask":{"file_id":"file-1"}}"#,
            "file_id",
        ),
        (
            Completions,
            r#"{"model":"m","prompt":"x","kv_transfer_params":{"do_remote_prefill":true,"remote_host":"h"}}"#,
            "kv_transfer_params",
        ),
        (
            Chat,
            r#"{"model":"m","messages":[],"bootstrap_host":"h","bootstrap_port":1}"#,
            "bootstrap_host",
        ),
        (
            Chat,
            r#"{"model":"m","extra_body":{"kv_transfer_params":{"remote_host":"h"}}}"#,
            "kv_transfer_params",
        ),
        (
            Responses,
            r#"{"model":"m","input":"x","session_params":{"id":"s"}}"#,
            "session_params",
        ),
        (
            CountContent,
            r#"{"generateContentRequest":{"cachedContent":"cachedContents/1"}}"#,
            "cachedContent",
        ),
        (
            Chat,
            r#"{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}"#,
            "file_id",
        ),
        (
            Chat,
            r#"{"messages":[{"role":"assistant","audio":{"id":"audio_1"}}]}"#,
            "audio.id",
        ),
        (
            Chat,
            r#"{"audio":{"voice":{"id":"voice_1"},"format":"wav"}}"#,
            "voice.id",
        ),
        (
            Chat,
            r#"{"messages":[{"content":[{"file":{"\u0066ile\u005Fid":"file-1"}}]}]}"#,
            "file_id",
        ),
        (
            Chat,
            r#"{"messages":[{"content":[{"file":{"File_Id":"file-1"}}]}]}"#,
            "file_id",
        ),
        (
            Chat,
            r#"{"messages":[{"content":[{"file":{"F\u0049LE_ID":"file-1"}}]}]}"#,
            "file_id",
        ),
        (
            Chat,
            r#"{"messages":[{"content":[{"file":{"f\u0131le_id":"file-1"}}]}]}"#,
            "file_id",
        ),
        (
            Messages,
            "{\"messages\":[{\"source\":{\"f\u{131}le_id\":\"file_1\"}}]}",
            "file_id",
        ),
        (Chat, r#"{"Audio":{"Id":"audio_1"}}"#, "audio.id"),
        (
            Responses,
            r#"{"Input":[{"Type":"item_reference","ID":"msg_1"}]}"#,
            "input[].id",
        ),
        (
            Responses,
            r#"{"input":[{"type":"reasoning","id":"rs_1","Content":[{"text":"x"}]}]}"#,
            "input[].id",
        ),
        (
            GenerateContent,
            r#"{"contents":[{"parts":[{"FILEDATA":{"FILEURI":"files/x"}}]}]}"#,
            "fileUri",
        ),
        (
            Speech,
            r#"{"input":"hi","voice":{"id":"voice_1"}}"#,
            "voice.id",
        ),
        (
            Messages,
            r#"{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]}]}"#,
            "file_id",
        ),
        (
            Messages,
            r#"{"messages":[{"content":[{"type":"container_upload","file_id":"file_1"}]}]}"#,
            "file_id",
        ),
        (
            CountTokens,
            r#"{"messages":[{"content":[{"source":{"file_id":"file_1"}}]}]}"#,
            "file_id",
        ),
        (
            InputTokens,
            r#"{"input":[{"type":"item_reference","id":"msg_1"}]}"#,
            "input[].id",
        ),
        (
            Responses,
            r#"{"input":[{"type":"item_reference","id":"msg_1"}]}"#,
            "input[].id",
        ),
        (
            Responses,
            r#"{"input":[{"id":"msg_1","type":"item_reference"}]}"#,
            "input[].id",
        ),
        (
            Responses,
            r#"{"input":[{"type":"message","type":"item_reference","id":"msg_1"}]}"#,
            "input[].id",
        ),
        (Responses, r#"{"input":[{"id":"msg_1"}]}"#, "input[].id"),
        (
            Responses,
            r#"{"input": [ { "id" : "msg_1" , "type" : null } ]}"#,
            "input[].id",
        ),
        (
            Responses,
            r#"{"input":[{"id":"msg_1","content":[ ]}]}"#,
            "input[].id",
        ),
        (
            Responses,
            r#"{"input":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"x"}]}]}"#,
            "input[].id",
        ),
        (
            Responses,
            r#"{"input":[{"type":"reasoning","id":"rs_1","content":[ ],"encrypted_content":""}]}"#,
            "input[].id",
        ),
        (
            Responses,
            r#"{"input":[{"type":"image_generation_call","id":"ig_1","result":null}]}"#,
            "input[].id",
        ),
        (
            Responses,
            r#"{"input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]}"#,
            "file_id",
        ),
        (
            Responses,
            r#"{"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","file_id":"file-1"}]}]}"#,
            "file_id",
        ),
        (
            Responses,
            r#"{"input":[{"type":"code_interpreter_call","id":"ci_1","container_id":"cntr_1"}]}"#,
            "container_id",
        ),
        (
            Responses,
            r#"{"input":"x","tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]}"#,
            "vector_store_ids",
        ),
        (
            Responses,
            r#"{"input":"x","tools":[{"type":"code_interpreter","container":"cntr_1"}]}"#,
            "container",
        ),
        (
            Responses,
            r#"{"input":"x","tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["file-1"]}}]}"#,
            "file_ids",
        ),
        (
            Responses,
            r#"{"input":"x","tools":[{"type":"image_generation","input_image_mask":{"file_id":"file-1"}}]}"#,
            "file_id",
        ),
        (
            Responses,
            r#"{"input":"x","tools":[{"type":"shell","environment":{"skills":[{"type":"skill_reference","skill_id":"skill_1"}]}}]}"#,
            "skill_id",
        ),
        (
            Responses,
            r#"{"input":"x","prompt":{"id":"pmpt_1","variables":{"doc":{"type":"input_file","file_id":"file-1"}}}}"#,
            "file_id",
        ),
        (
            Responses,
            r#"{"input":"x","prompt":{"id":"pmpt_1","variables":{"input":{"type":"input_file","file_id":"file-1"}}}}"#,
            "file_id",
        ),
        (
            Responses,
            r#"{"input":"x","prompt":{"id":"pmpt_1","variables":{"schema":{"type":"input_file","file_id":"file-1"}}}}"#,
            "file_id",
        ),
        (
            Responses,
            r#"{"input":"x","prompt":{"id":"pmpt_1","variables":{"metadata":{"type":"input_file","file_id":"file-1"}}}}"#,
            "file_id",
        ),
        (
            Responses,
            r#"{"input":"x","prompt":{"id":"pmpt_1","variables":{"arguments":{"type":"input_file","file_id":"file-1"}}}}"#,
            "file_id",
        ),
        (
            Responses,
            r#"{"input":"x","prompt":{"id":"pmpt_1","variables":{"headers":{"type":"input_file","file_id":"file-1"}}}}"#,
            "file_id",
        ),
        (
            Chat,
            r#"{"messages":[],"tools":[{"type":"file_search","vector_store_ids":["vs_1"]}]}"#,
            "vector_store_ids",
        ),
        (
            Chat,
            r#"{"tools":[{"type":"code_interpreter","container":"cntr_1"}]}"#,
            "container",
        ),
        (
            Messages,
            r#"{"skills":[{"skill_id":"skill_1"}]}"#,
            "skill_id",
        ),
        (
            GenerateContent,
            r#"{"contents":[{"parts":[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/x"}}]}]}"#,
            "fileUri",
        ),
        (
            GenerateContent,
            r#"{"contents":[{"parts":[{"file_data":{"file_uri":"gs://bucket/x"}}]}]}"#,
            "file_uri",
        ),
        (
            GenerateContent,
            r#"{"contents":[{"parts":[{"file_data":{"file_uri":"files/x"}}]}]}"#,
            "file_uri",
        ),
        (
            GenerateContent,
            r#"{"tools":[{"fileSearch":{"fileSearchStoreNames":["fileSearchStores/x"]}}]}"#,
            "fileSearchStoreNames",
        ),
        (
            Chat,
            r#"{"messages":[],"extra_body":{"google":{"cached_content":"cachedContents/x"}}}"#,
            "cached_content",
        ),
        (
            Chat,
            r#"{"google":{"cachedContent":"cachedContents/x"},"messages":[]}"#,
            "cachedContent",
        ),
        (
            Chat,
            r#"{"cached_content":"cachedContents/x"}"#,
            "cached_content",
        ),
        (
            Chat,
            r#"{"data_sources":[{"type":"azure_search","parameters":{"index_name":"x"}}]}"#,
            "data_sources",
        ),
        (
            Chat,
            r#"{"messages":[{"content":[{"type":"image_url","image_url":{"url":"gs://b/x.png"}}]}]}"#,
            "url",
        ),
        (
            Chat,
            r#"{"messages":[{"content":[{"type":"image_url","image_url":{"url":"g\u0073:\/\/b/x.png"}}]}]}"#,
            "url",
        ),
        (
            Chat,
            r#"{"messages":[{"content":[{"type":"file","file":{"file_data":"S\u0033\u003a//b/x.pdf"}}]}]}"#,
            "file_data",
        ),
        (
            Chat,
            r#"{"messages":[{"content":[{"image_url":{"url":" HTTPS://GenerativeLanguage.googleapis.com/v1beta/files/x"}}]}]}"#,
            "url",
        ),
        (
            Messages,
            r#"{"messages":[{"content":[{"type":"document","source":{"type":"url","url":"s3://b/x.pdf"}}]}]}"#,
            "url",
        ),
        (
            Responses,
            r#"{"input":[{"role":"user","content":[{"type":"input_file","file_url":"gs://b/x.pdf"}]}]}"#,
            "file_url",
        ),
        (
            Responses,
            r#"{"input":[{"role":"user","content":[{"type":"input_image","image_url":"gs://b/x.png"}]}]}"#,
            "image_url",
        ),
        (
            Responses,
            r#"{"input":"x","tools":[{"type":"file_search","collection_ids":["c"]}]}"#,
            "collection_ids",
        ),
        (
            Responses,
            r#"{"input":"x","tools":[{"type":"azure_ai_search","azure_ai_search":{"indexes":[{"index_name":"x"}]}}]}"#,
            "azure_ai_search",
        ),
        (
            Responses,
            r#"{"input":"x","agent":{"type":"agent_reference","name":"x"}}"#,
            "agent",
        ),
        (
            Responses,
            r#"{"input":"x","agent_reference":{"name":"x"}}"#,
            "agent_reference",
        ),
        (Responses, r#"{"input":"x","agent":"x"}"#, "agent"),
        (
            Responses,
            r#"{"input":[{"type":"message","id":"msg_1"}]}"#,
            "input[].id",
        ),
        (
            Responses,
            r#"{"input":[{"type":"message","id":"msg_1","role":"user","content":null}]}"#,
            "input[].id",
        ),
        (
            Responses,
            r#"{"input":[{"status":"completed","type":"file_search_call","id":"fs_1","results":null}]}"#,
            "input[].id",
        ),
        (
            Responses,
            r#"{"input":[{"type":"mcp_list_tools","id":"mcpl_1"}]}"#,
            "input[].id",
        ),
        (
            GenerateContent,
            r#"{"tools":[{"retrieval":{"externalApi":{"endpoint":"https://x"}}}]}"#,
            "externalApi",
        ),
        (
            GenerateContent,
            r#"{"tools":[{"retrieval":{"vertex_ai_search":{"engine":"x"}}}]}"#,
            "vertex_ai_search",
        ),
        (
            GenerateContent,
            r#"{"tools":[{"retrieval":{"vertexRagStore":{"x":1}}}]}"#,
            "vertexRagStore",
        ),
        (
            GenerateContent,
            r#"{"tools":[{"googleMaps":{"authConfig":{"googleServiceAccountConfig":{"serviceAccount":"x"}}}}]}"#,
            "serviceAccount",
        ),
        (Embeddings, r#"{"input":[{"file_id":"x"}]}"#, "file_id"),
        (
            Embeddings,
            r#"{"input":"x","vector_store_ids":["vs_1"]}"#,
            "vector_store_ids",
        ),
        (
            Moderations,
            r#"{"input":[{"type":"image_url","image_url":{"url":"gs://b/x.png"}}]}"#,
            "url",
        ),
        (Moderations, r#"{"input":"x","file_id":"f"}"#, "file_id"),
        (
            GenerateContent,
            r#"{"modelArmorConfig":{"promptTemplateName":"projects/p/locations/l/templates/t"}}"#,
            "modelArmorConfig",
        ),
        (
            GenerateContent,
            r#"{"model_armor_config":{"response_template_name":"projects/p/locations/l/templates/t"}}"#,
            "model_armor_config",
        ),
        (
            GenerateContent,
            r#"{"tools":[{"enterpriseWebSearch":{}}]}"#,
            "enterpriseWebSearch",
        ),
        (
            GenerateContent,
            r#"{"tools":[{"enterprise_web_search":{"exclude_domains":["x"]}}]}"#,
            "enterprise_web_search",
        ),
        (
            GenerateContent,
            r#"{"tools":[{"parallelAiSearch":{}}]}"#,
            "parallelAiSearch",
        ),
        (
            GenerateContent,
            r#"{"tools":[{"parallel_ai_search":{"customConfigs":{}}}]}"#,
            "parallel_ai_search",
        ),
        (
            GenerateContent,
            r#"{"tools":[{"mcpServers":[{"name":"x"}]}]}"#,
            "mcpServers",
        ),
        (
            Messages,
            r#"{"messages":[],"mcp_servers":[{"type":"url","name":"x"}]}"#,
            "mcp_servers",
        ),
        (
            Chat,
            r#"{"messages":[],"mcpServers":{"x":{}}}"#,
            "mcpServers",
        ),
        (
            Responses,
            r#"{"input":"x","tools":[{"type":"mcp","server_label":"d","connector_id":"connector_dropbox"}]}"#,
            "connector_id",
        ),
    ];
    for (operation, body, member) in table {
        for cut in 0..=body.len() {
            assert_eq!(in_pieces(operation, body, &[cut]), Some(member), "{body}");
        }
        assert_eq!(in_pieces(operation, body, &[]), Some(member), "{body}");
    }
}

#[test]
fn what_is_the_callers_own_names_nothing() {
    let table = [
        (
            Chat,
            r#"{"messages":[{"role":"user","content":"the member file_id is \"audio\""}]}"#,
        ),
        (
            Chat,
            r#"{"messages":[{"tool_calls":[{"id":"call_1","function":{"arguments":"{\"file_id\":\"x\"}"}}]}]}"#,
        ),
        (
            Chat,
            r#"{"tools":[{"function":{"parameters":{"properties":{"file_id":{"type":"string","enum":["a"]}},"required":["file_id"]}}}]}"#,
        ),
        (
            Chat,
            r#"{"response_format":{"json_schema":{"schema":{"file_id":"x"}}},"metadata":{"file_id":"x"}}"#,
        ),
        (
            Chat,
            r#"{"modalities":["audio"],"audio":{"voice":"alloy","format":"wav"}}"#,
        ),
        (
            Chat,
            r#"{"messages":[{"content":[{"file":{"file_id":null,"file_data":"x"}}]}]}"#,
        ),
        (
            Chat,
            r#"{"messages":[{"content":[{"file":{"file_id":"","file_ids":[]}}]}]}"#,
        ),
        (
            Messages,
            r#"{"messages":[{"content":[{"type":"tool_use","id":"t","input":{"file_id":"x"}}]}],"tools":[{"input_schema":{"file_id":"x"}}]}"#,
        ),
        (Responses, r#"{"input":"x"}"#),
        (
            Responses,
            r#"{"input":[{"role":"user","id":"msg_1","content":"x"},{"type":"message","id":"msg_2","content":[]}]}"#,
        ),
        (
            Responses,
            r#"{"input":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}]}"#,
        ),
        (
            Responses,
            r#"{"input":[{"type":"reasoning","id":"rs_1","content":[{"type":"reasoning_text","text":"x"}]}]}"#,
        ),
        (
            Responses,
            r#"{"input":[{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"}]}"#,
        ),
        (
            Responses,
            r#"{"input":[{"type":"image_generation_call","id":"ig_1","result":"aGk="}]}"#,
        ),
        (
            Responses,
            r#"{"input":[{"type":"mcp_list_tools","id":"m","tools":[{"input_schema":{"file_id":"x"}}]}]}"#,
        ),
        (
            Responses,
            r#"{"input":"x","prompt":{"id":"pmpt_1"},"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]}"#,
        ),
        (
            Responses,
            r#"{"input":"x","tools":[{"type":"function","name":"f","parameters":{"file_id":"x","y":["}"]}}]}"#,
        ),
        (
            GenerateContent,
            r#"{"contents":[{"parts":[{"fileData":{"fileUri":"https://www.youtube.com/watch?v=x"}}]}]}"#,
        ),
        (
            GenerateContent,
            r#"{"contents":[{"parts":[{"functionCall":{"args":{"fileUri":"gs://x"}}},{"functionResponse":{"response":{"file_uri":"x"}}}]}]}"#,
        ),
        (
            Chat,
            r#"{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://storage.googleapis.com/public/x.png"}}]}]}"#,
        ),
        (
            Chat,
            r#"{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}},{"text":"see gs://b/x and s3://b/y, in generativelanguage"}]}]}"#,
        ),
        (
            Chat,
            r#"{"data_sources":[],"cached_content":null,"agent":{"name":"x"}}"#,
        ),
        (
            Chat,
            r#"{"messages":[{"tool_calls":[{"function":{"parameters":{"url":"gs://b/x","data_sources":[1]}}}]}]}"#,
        ),
        (
            Responses,
            r#"{"input":[{"type":"file_search_call","id":"fs_1","queries":["x"],"results":null,"status":"completed"}]}"#,
        ),
        (
            Responses,
            r#"{"input":[{"type":"web_search_call","id":"ws_1","action":{"type":"search","query":"x"}}],"tools":[{"agent":"x"}],"agent":{}}"#,
        ),
        (
            Responses,
            r#"{"input":[{"type":"custom_tool_call","id":"ctc_1","input":"x"}]}"#,
        ),
        (
            GenerateContent,
            r#"{"tools":[{"retrieval":{}},{"googleSearch":{}}],"contents":[{"parts":[{"text":"externalApi serviceAccount"}]}]}"#,
        ),
        (
            Messages,
            r#"{"messages":[],"mcp_servers":[],"tools":[{"type":"mcp_toolset","mcp_server_name":"x"}]}"#,
        ),
        (
            Responses,
            r#"{"input":"x","tools":[{"type":"mcp","server_label":"d","server_url":"https://example.com/mcp"}]}"#,
        ),
        (
            GenerateContent,
            r#"{"tools":[{"googleSearch":{}},{"mcpServers":[]}],"modelArmorConfig":null}"#,
        ),
        (Embeddings, r#"{"input":["file_id","gs://b/x"]}"#),
        (Rerank, r#"{"query":"x","documents":[{"file_id":"x"}]}"#),
    ];
    for (operation, body) in table {
        for cut in 0..=body.len() {
            assert_eq!(in_pieces(operation, body, &[cut]), None, "{body}");
        }
    }
}

#[test]
fn a_long_document_in_the_place_of_an_address_is_read_no_further_than_an_address_goes() {
    for filler in ["a", "\u{e9}", "\\n", "\\u00e9", "\\\\"] {
        for shift in 0..8 {
            let text = format!("{}{}", "x".repeat(shift), filler.repeat(8 << 10));
            let body = |url: &str| {
                format!(r#"{{"messages":[{{"content":[{{"file":{{"file_data":"{url}"}}}}]}}]}}"#)
            };
            assert_eq!(in_pieces(Chat, &body(&text), &[]), None, "{filler}");
            let named = body(&format!("gs://{text}"));
            assert_eq!(in_pieces(Chat, &named, &[]), Some("file_data"), "{filler}");
        }
    }
}

#[test]
fn pieces_of_any_length_say_the_same() {
    let body = r#"{"messages":[{"role":"user","content":"a long way to go before there is anything to be found here"},{"content":[{"type":"file","file":{"file_id":"file-1"}}]}]}"#;
    let mut draw = Draw::new(testing::seed("pieces_of_any_length_say_the_same"));
    for _ in 0..2000 {
        let mut cuts: Vec<usize> = (0..draw.below(40))
            .map(|_| draw.below(body.len()))
            .collect();
        cuts.sort_unstable();
        assert_eq!(in_pieces(Chat, body, &cuts), Some("file_id"), "{cuts:?}");
    }
}

#[test]
fn a_member_of_the_body_itself_counts_where_its_dialect_has_it() {
    let read = |operation, body: &str| {
        let mut head = CallHead::read(body.as_bytes()).expect("a call");
        head.look_inside(
            operation,
            STORED,
            &[Bytes::copy_from_slice(body.as_bytes())],
        );
        head.keeps
    };
    let body = r#"{"conversation":"c","file":{"file_id":"f"}}"#;
    assert_eq!(read(Responses, body), Some("conversation"));
    assert_eq!(read(Chat, body), Some("file_id"));
    assert_eq!(read(Embeddings, body), Some("file_id"));
    assert_eq!(read(Rerank, body), None);
}
