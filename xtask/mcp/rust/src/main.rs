//! The client of the official Rust SDK, as it comes: it asks a server of the conformance suite for one of everything and prints what it was told.

use rmcp::ServiceExt;
use rmcp::model::{CallToolRequestParams, GetPromptRequestParams, ReadResourceRequestParams};
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::{Value, json};

type Failed = Box<dyn std::error::Error>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failed> {
    let url = std::env::args()
        .nth(1)
        .ok_or("the address of a server is wanted")?;
    let transport = StreamableHttpClientTransport::from_uri(url);
    let client = ().serve(transport).await?;
    let mut tools: Vec<String> = client
        .list_all_tools()
        .await?
        .into_iter()
        .map(|of| of.name.into())
        .collect();
    let mut prompts: Vec<String> = client
        .list_all_prompts()
        .await?
        .into_iter()
        .map(|of| of.name)
        .collect();
    let mut resources: Vec<String> = client
        .list_all_resources()
        .await?
        .into_iter()
        .map(|of| of.uri.clone())
        .collect();
    tools.sort();
    prompts.sort();
    resources.sort();
    let called = client
        .call_tool(CallToolRequestParams::new("test_simple_text"))
        .await?;
    let failed = client
        .call_tool(CallToolRequestParams::new("test_error_handling"))
        .await?;
    let arguments = json!({ "arg1": "a", "arg2": "b" });
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let prompt = client
        .get_prompt(
            GetPromptRequestParams::new("test_prompt_with_arguments").with_arguments(arguments),
        )
        .await?;
    let read = client
        .read_resource(ReadResourceRequestParams::new("test://static-text"))
        .await?;
    let refused = client
        .call_tool(CallToolRequestParams::new("nobody_has_this"))
        .await;
    let told = json!({
        "tools": tools,
        "prompts": prompts,
        "resources": resources,
        "text": called.content,
        "error": failed.is_error,
        "prompt": prompt.messages,
        "resource": read.contents,
        "refused": refused.is_err(),
    });
    client.cancel().await?;
    println!("{}", Value::to_string(&told));
    Ok(())
}
