//! A way through an HTTP proxy: `CONNECT` (RFC 9110, 9.3.6).
//!
//! Invariant: what the proxy says is never taken for the upstream's word; its credential goes to it and to nobody
//! else.
//! Not here: plain HTTP through a proxy, which needs no tunnel but a target in absolute form (`h1`).

use std::io;

use policy::attempt::Failure;
use policy::snapshot::{Origin, Proxy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use wire::head::ResponseHead;
use wire::http1::{Limits, Step, parse_response};

use crate::socket::Socket;
use crate::why;

/// Longest head of a proxy's answer.
const HEAD_BYTES: usize = 16 << 10;

/// Asks for a tunnel to the origin.
pub(crate) async fn open(
    socket: &mut Socket,
    origin: &Origin,
    proxy: &Proxy,
) -> Result<(), Failure> {
    match asked(socket, origin, proxy).await {
        Ok(200..=299) => Ok(()),
        Ok(status) => {
            why::tell(format_args!("{} answered {status}", proxy.host));
            Err(Failure::Proxy)
        }
        Err(error) => {
            why::tell(format_args!("{} broke off: {error}", proxy.host));
            Err(Failure::Proxy)
        }
    }
}

async fn asked(socket: &mut Socket, origin: &Origin, proxy: &Proxy) -> io::Result<u16> {
    let host = if origin.host.contains(':') {
        format!("[{}]", origin.host)
    } else {
        origin.host.clone()
    };
    let authority = format!("{host}:{}", origin.port);
    let mut request = format!("CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n").into_bytes();
    if let Some(authorization) = &proxy.authorization {
        request.extend_from_slice(b"proxy-authorization: ");
        request.extend_from_slice(authorization.expose());
        request.extend_from_slice(b"\r\n");
    }
    request.extend_from_slice(b"\r\n");
    let sent = socket.write_all(&request).await;
    // It may hold a credential.
    request.fill(0);
    sent?;
    let limits = Limits {
        head_bytes: HEAD_BYTES,
        ..Limits::default()
    };
    let (mut read, mut head) = (Vec::new(), ResponseHead::new());
    loop {
        // By the byte, near the end: what follows belongs to the tunnel. It is one head for a connection.
        let byte = socket.read_u8().await?;
        read.push(byte);
        if byte != b'\n' {
            continue;
        }
        let step = parse_response(&read, &limits, &mut head)
            .map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))?;
        match step {
            Step::Partial => {}
            Step::Done { .. } if head.status < 200 => read.clear(),
            Step::Done { .. } => return Ok(head.status),
        }
    }
}
