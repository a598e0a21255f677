//! An upstream that answers every call with the same few tokens.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

const ANSWER: &str = r#"{"id":"1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hi."},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":2,"total_tokens":10}}"#;

/// Answers until the program ends.
pub(super) fn start() -> Result<SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|cause| cause.to_string())?;
    let address = listener.local_addr().map_err(|cause| cause.to_string())?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away is no concern here.
            drop(answer(stream));
        }
    });
    Ok(address)
}

/// One call a connection: its head and body are read to the end of the body, which is JSON and ends in a brace.
fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let (mut seen, mut part) = (Vec::new(), [0; 4096]);
    while !seen.ends_with(b"}") {
        let read = stream.read(&mut part)?;
        if read == 0 {
            return Ok(());
        }
        seen.extend(part.iter().take(read));
    }
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{ANSWER}",
        ANSWER.len()
    )
}
