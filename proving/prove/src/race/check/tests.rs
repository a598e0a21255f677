//! A server that passes nothing on.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use super::passes_headers_on;
use crate::host::ports;
use crate::subject::Client;

#[test]
fn an_answer_that_comes_too_soon_shows_a_header_that_was_not_passed_on() {
    let listener = TcpListener::bind(ports::loopback(0)).expect("a port");
    let address = listener.local_addr().expect("an address");
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let count = stream.read(&mut [0; 4096]).expect("a request");
        let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(answer.as_bytes()).expect("an answer");
        count
    });
    let deaf = passes_headers_on(&Client::default(), address).expect("an answer");
    let says = deaf.expect("it was too soon");
    assert!(says.contains("x-fixed-latency-us"), "{says}");
    assert!(server.join().expect("the server") > 0);
}
