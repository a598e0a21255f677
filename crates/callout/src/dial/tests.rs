//! Which of several addresses is taken: real sockets, virtual time.

use super::*;
use crate::fixture::still;

fn listener() -> (std::net::TcpListener, SocketAddr) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

#[tokio::test(start_paused = true)]
async fn an_address_that_refuses_gives_way_to_the_next() {
    let _still = still();
    let (closed, gone) = listener();
    drop(closed);
    let (_open, address) = listener();
    let tcp = first_of(vec![gone, address]).await.expect("a connection");
    assert_eq!(tcp.peer_addr().expect("a peer"), address);
    let refused = first_of(vec![gone]).await.expect_err("nobody listens");
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_silent_is_not_waited_for_alone() {
    // Nobody takes connections of a backlog that is full, so that one more is neither taken nor refused.
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket
        .bind("127.0.0.1:0".parse().expect("an address"))
        .expect("a port");
    let full = socket.listen(1).expect("a backlog");
    let silent = full.local_addr().expect("an address");
    let mut filling = Vec::new();
    let moment = Duration::from_millis(100);
    while let Ok(taken) = std::net::TcpStream::connect_timeout(&silent, moment) {
        filling.push(taken);
    }
    let (_open, address) = listener();
    let tcp = first_of(vec![silent, address]).await.expect("a connection");
    assert_eq!(tcp.peer_addr().expect("a peer"), address);
}

#[tokio::test(start_paused = true)]
async fn a_name_is_looked_up_and_what_it_leads_to_is_checked() {
    let dialer = Dialer {
        tls: crate::fixture::tls().speaking(&[]),
        allow_link_local: false,
        memory: None,
    };
    let origin = |url: &str| crate::url::Url::parse(url).expect(url).origin().clone();
    let found = dialer.addresses(&origin("http://localhost:8080/")).await;
    let found = found.expect("addresses");
    assert!(
        found
            .iter()
            .all(|found| found.ip().is_loopback() && found.port() == 8080)
    );
    let found = dialer.addresses(&origin("http://169.254.169.254/")).await;
    assert!(matches!(found, Err(Fault::Address { .. })));
    let near = Dialer {
        allow_link_local: true,
        ..dialer
    };
    assert!(
        near.addresses(&origin("http://169.254.169.254/"))
            .await
            .is_ok()
    );
}
