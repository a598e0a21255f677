//! Endpoint pickers in memory, over HTTP/2 in both directions at one time: what each is told, and what is made of its answers.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::server::conn::http2 as server;
use hyper::service::service_fn;
use policy::picker::{Picked, PickedCall, Picker};
use policy::wire::head::ResponseHead;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::messages::{
    CommonResponse, HeaderMutation, HeaderValue as Field, HeaderValueOption, HeadersResponse,
    HttpStatus, ImmediateResponse, Kind, Said, Step, Struct, Value,
};
use super::*;
use crate::dial::Memory;
use crate::fixture::tls;
use crate::questions::Questions;
use crate::service::Handle;

/// What a picker does with a step of a call.
enum Does {
    Say(Vec<ProcessingResponse>),
    /// Ends the stream, with this status of gRPC.
    End(&'static str),
    /// Drops the connection.
    Drop,
}

type Acting = dyn Fn(&ProcessingRequest) -> Does + Send + Sync;

/// What a server was told, in order; `None` where a stream ended.
type Told = UnboundedReceiver<Option<ProcessingRequest>>;

/// Bytes, and then trailers.
struct Out(mpsc::UnboundedReceiver<Frame<Bytes>>);

impl Body for Out {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        self.0.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

/// A picker that acts so, and whom it is asked by.
struct Rig {
    picker: EndpointPicker,
    told: Told,
    connections: Arc<AtomicUsize>,
}

/// One whose first connections lead to nobody: what is sent there is taken, and nothing comes back.
fn rig_behind(
    holes: usize,
    acting: impl Fn(&ProcessingRequest) -> Does + Send + Sync + 'static,
) -> Rig {
    rig_of(false, holes, acting)
}

fn rig(acting: impl Fn(&ProcessingRequest) -> Does + Send + Sync + 'static) -> Rig {
    rig_where(false, acting)
}

/// One whose fields go to clients, or do not.
fn rig_where(
    adds_fields: bool,
    acting: impl Fn(&ProcessingRequest) -> Does + Send + Sync + 'static,
) -> Rig {
    rig_of(adds_fields, 0, acting)
}

fn rig_of(
    adds_fields: bool,
    holes: usize,
    acting: impl Fn(&ProcessingRequest) -> Does + Send + Sync + 'static,
) -> Rig {
    let acting: Arc<Acting> = Arc::new(acting);
    let (tell, told) = unbounded_channel();
    let connections = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&connections);
    let memory: Memory = Arc::new(move |_| {
        let before = counted.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = tokio::io::duplex(64 << 10);
        if before < holes {
            tokio::spawn(async move {
                let _open = theirs;
                std::future::pending::<()>().await;
            });
            return Ok(ours);
        }
        tokio::spawn(serve(theirs, Arc::clone(&acting), tell.clone()));
        Ok(ours)
    });
    let url = Url::parse("http://picker.test:9002").expect("a URL");
    let settings = PickerSettings {
        tls: tls(),
        within: Duration::from_millis(500),
        fails_open: false,
        adds_fields,
        url,
    };
    let dialer = Dialer {
        tls: tls().speaking(&[]),
        allow_link_local: false,
        memory: Some(memory),
    };
    let processor = Processor::dialling(settings.url.at(METHOD).expect("a path"), dialer);
    Rig {
        picker: EndpointPicker::over(
            processor,
            &Handle::here(),
            &settings,
            Arc::new(Questions::default()),
        ),
        told,
        connections,
    }
}

async fn serve(
    stream: tokio::io::DuplexStream,
    acting: Arc<Acting>,
    tell: UnboundedSender<Option<ProcessingRequest>>,
) {
    let (cut, mut is_cut) = mpsc::channel::<()>(1);
    let service = service_fn(move |request: Request<Incoming>| {
        assert_eq!(request.uri().path(), METHOD);
        assert_eq!(request.headers()[CONTENT_TYPE], "application/grpc");
        let (say, said) = unbounded_channel();
        let stream = process(request.into_body(), Arc::clone(&acting), tell.clone(), say);
        let cut = cut.clone();
        tokio::spawn(async move {
            if stream.await {
                let _gone = cut.send(()).await;
            }
        });
        let response = Response::builder().header(CONTENT_TYPE, "application/grpc");
        std::future::ready(response.body(Out(said)))
    });
    let serving = server::Builder::new(TokioExecutor::new());
    let serving = serving.serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        ended = serving => drop(ended),
        _ = is_cut.recv() => {}
    }
}

/// One stream; gives whether its connection is to be dropped.
async fn process(
    mut body: Incoming,
    acting: Arc<Acting>,
    tell: UnboundedSender<Option<ProcessingRequest>>,
    say: UnboundedSender<Frame<Bytes>>,
) -> bool {
    let mut read = BytesMut::new();
    let end = |status: &'static str| {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static(status));
        drop(say.send(Frame::trailers(trailers)));
    };
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { break };
        let Ok(data) = frame.into_data() else { break };
        read.extend_from_slice(&data);
        while let Some(length) = read.get(1..FRAME) {
            let length = u32::from_be_bytes(length.try_into().expect("four bytes")) as usize;
            if read.len() < FRAME + length {
                break;
            }
            read.advance(FRAME);
            let message = read.split_to(length);
            let request = ProcessingRequest::decode(message.freeze()).expect("a message");
            drop(tell.send(Some(request.clone())));
            match acting(&request) {
                Does::Say(responses) => {
                    for response in responses {
                        let framed = grpc::framed(&response.encode_to_vec()).expect("short");
                        drop(say.send(Frame::data(framed.into())));
                    }
                }
                Does::End(status) => {
                    end(status);
                    return false;
                }
                Does::Drop => return true,
            }
        }
    }
    drop(tell.send(None));
    end("0");
    false
}

/// A pick in a header, as pickers answer once they have the whole body.
fn in_header(list: &str) -> ProcessingResponse {
    ProcessingResponse {
        said: Some(Said::RequestHeaders(setting(&[(
            "x-gateway-destination-endpoint",
            list,
        )]))),
        dynamic_metadata: None,
    }
}

/// An answer that sets these headers.
fn setting(fields: &[(&str, &str)]) -> HeadersResponse {
    let option = |(name, value): &(&str, &str)| HeaderValueOption {
        header: Some(Field {
            key: (*name).to_owned(),
            value: String::new(),
            raw_value: value.as_bytes().to_vec(),
        }),
    };
    let set_headers = fields.iter().map(option).collect();
    HeadersResponse {
        response: Some(CommonResponse {
            header_mutation: Some(HeaderMutation { set_headers }),
        }),
    }
}

fn in_metadata(list: &str) -> ProcessingResponse {
    let value = |kind| Value { kind: Some(kind) };
    let own = Struct {
        fields: [(
            "x-gateway-destination-endpoint".to_owned(),
            value(Kind::Text(list.to_owned())),
        )]
        .into(),
    };
    ProcessingResponse {
        said: Some(Said::RequestHeaders(HeadersResponse::default())),
        dynamic_metadata: Some(Struct {
            fields: [("envoy.lb".to_owned(), value(Kind::Struct(own)))].into(),
        }),
    }
}

fn body_passes() -> ProcessingResponse {
    ProcessingResponse {
        said: Some(Said::RequestBody(HeadersResponse::default())),
        dynamic_metadata: None,
    }
}

/// Whether the request is whole with this step.
fn is_whole(request: &ProcessingRequest) -> bool {
    match &request.step {
        Some(Step::RequestHeaders(headers)) => headers.end_of_stream,
        Some(Step::RequestBody(body)) => body.end_of_stream,
        Some(Step::ResponseHeaders(_)) | None => false,
    }
}

/// Answers with this once the request is whole.
fn picking(response: ProcessingResponse) -> Rig {
    rig(move |request| match is_whole(request) {
        true => Does::Say(vec![response.clone(), body_passes()]),
        false => Does::Say(Vec::new()),
    })
}

fn call(body: &[u8]) -> PickedCall {
    let headers = [(":method", "POST"), (":path", "/v1/x"), ("x-odd", "ä")];
    let headers = headers.map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into()));
    PickedCall {
        headers: headers.to_vec(),
        body: vec![Bytes::copy_from_slice(body)],
    }
}

fn addresses(picked: &Picked) -> Vec<String> {
    match picked {
        Picked::Endpoints(addresses, _) => addresses.iter().map(ToString::to_string).collect(),
        other => panic!("{other:?}"),
    }
}

async fn heard(told: &mut Told) -> ProcessingRequest {
    let request = told.recv().await.expect("a server");
    request.expect("a message, and no end")
}

#[tokio::test(start_paused = true)]
async fn a_connection_on_which_nothing_is_heard_is_not_asked_again() {
    let rig = rig_behind(1, |request| match is_whole(request) {
        true => Does::Say(vec![in_header("10.0.0.2:8000")]),
        false => Does::Say(Vec::new()),
    });
    let picked = rig.picker.pick(call(b"1")).await;
    assert!(matches!(picked, Picked::Unavailable(_)), "{picked:?}");
    let picked = rig.picker.pick(call(b"2")).await;
    assert_eq!(addresses(&picked), ["10.0.0.2:8000"]);
    assert_eq!(rig.connections.load(Ordering::Relaxed), 2);
    // One that is slow is not gone.
    let rig = rig_behind(0, |_| Does::Say(Vec::new()));
    for _ in 0..2 {
        let picked = rig.picker.pick(call(b"1")).await;
        assert!(matches!(picked, Picked::Unavailable(_)), "{picked:?}");
    }
    assert_eq!(rig.connections.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn the_whole_request_is_shown_and_who_served_is_told() {
    let mut rig = picking(in_header(
        "10.0.0.2:8000, [fd00::1]:80,not an address,10.0.0.3:8000",
    ));
    let body = vec![b'x'; 200_000];
    let picked = rig.picker.pick(call(&body)).await;
    assert_eq!(
        addresses(&picked),
        ["10.0.0.2:8000", "[fd00::1]:80", "10.0.0.3:8000"]
    );
    let head = heard(&mut rig.told).await;
    assert_eq!(head.protocol_config.map(|of| of.request_body_mode), Some(4));
    let Some(Step::RequestHeaders(headers)) = head.step else {
        panic!("{head:?}");
    };
    assert!(!headers.end_of_stream);
    let fields = headers.headers.expect("headers").headers;
    let fields: Vec<_> = fields
        .iter()
        .map(|field| (&*field.key, String::from_utf8_lossy(&field.raw_value)))
        .collect();
    let said = |name, value: &str| (name, value.to_owned().into());
    assert_eq!(
        fields,
        [
            said(":method", "POST"),
            said(":path", "/v1/x"),
            said("x-odd", "ä")
        ]
    );
    let mut shown = Vec::new();
    loop {
        let Some(Step::RequestBody(piece)) = heard(&mut rig.told).await.step else {
            panic!("no body");
        };
        assert!(piece.body.len() <= 64 << 10);
        shown.extend_from_slice(&piece.body);
        if piece.end_of_stream {
            break;
        }
    }
    assert_eq!(shown, body);
    let Picked::Endpoints(_, served) = picked else {
        panic!("no pick");
    };
    let mut head = ResponseHead {
        status: 200,
        ..ResponseHead::default()
    };
    let pushed = head.fields.push(b"content-type", b"text/plain");
    pushed.expect("a field");
    let added = served.tell("10.0.0.3:8000", &head);
    assert!(added.is_none(), "nobody waits for it");
    let answer = heard(&mut rig.told).await;
    let served = answer.metadata_context.as_ref().and_then(|of| {
        let of = of.filter_metadata.get("envoy.lb")?;
        of.fields.get("x-gateway-destination-endpoint-served")
    });
    let served = served.and_then(|value| value.kind.as_ref());
    assert_eq!(served, Some(&Kind::Text("10.0.0.3:8000".to_owned())));
    let Some(Step::ResponseHeaders(headers)) = answer.step else {
        panic!("{answer:?}");
    };
    let fields = headers.headers.expect("headers").headers;
    let fields: Vec<_> = fields
        .iter()
        .map(|field| (&*field.key, &*field.raw_value))
        .collect();
    assert_eq!(
        fields,
        [(":status", &b"200"[..]), ("content-type", b"text/plain")]
    );
    assert_eq!(rig.told.recv().await, Some(None), "the stream is over");
}

#[tokio::test(start_paused = true)]
async fn what_a_picker_says_of_an_answer_is_given_where_it_is_wanted() {
    let long = "x".repeat(2000);
    let fields = [
        ("X-Served-By", "10.0.0.3:8000"),
        ("content-length", "7"),
        (":status", "500"),
        ("x-gateway-destination-endpoint-served", "no"),
        ("x-long", &long),
        ("x-debug", "yes"),
    ];
    let said = ProcessingResponse {
        said: Some(Said::ResponseHeaders(setting(&fields))),
        dynamic_metadata: None,
    };
    let rig = rig_where(true, move |request| match &request.step {
        Some(Step::ResponseHeaders(_)) => Does::Say(vec![said.clone()]),
        _ if is_whole(request) => Does::Say(vec![in_header("10.0.0.3:8000")]),
        _ => Does::Say(Vec::new()),
    });
    let Picked::Endpoints(_, served) = rig.picker.pick(call(b"")).await else {
        panic!("no pick");
    };
    let head = ResponseHead {
        status: 200,
        ..ResponseHead::default()
    };
    let added = served
        .tell("10.0.0.3:8000", &head)
        .expect("it is waited for")
        .await;
    let added: Vec<_> = added
        .iter()
        .map(|(name, value)| {
            (
                String::from_utf8_lossy(name),
                String::from_utf8_lossy(value),
            )
        })
        .collect();
    let said = |name: &'static str, value: &'static str| (name.into(), value.into());
    assert_eq!(
        added,
        [said("x-served-by", "10.0.0.3:8000"), said("x-debug", "yes")]
    );
    // One that says nothing of answers keeps them for its second and no longer.
    let rig = rig_where(true, |request| match &request.step {
        Some(Step::ResponseHeaders(_)) => Does::Say(Vec::new()),
        _ => Does::Say(vec![in_header("10.0.0.3:8000")]),
    });
    let Picked::Endpoints(_, served) = rig.picker.pick(call(b"")).await else {
        panic!("no pick");
    };
    let added = served
        .tell("10.0.0.3:8000", &head)
        .expect("it is waited for")
        .await;
    assert!(added.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_pick_may_stand_in_metadata_and_a_call_may_have_no_body() {
    let rig = picking(in_metadata("127.0.0.1:9"));
    let picked = rig.picker.pick(call(b"")).await;
    assert_eq!(addresses(&picked), ["127.0.0.1:9"]);
}

#[tokio::test(start_paused = true)]
async fn one_that_nobody_serves_is_ended() {
    let mut rig = picking(in_header("10.0.0.2:8000"));
    drop(rig.picker.pick(call(b"")).await);
    heard(&mut rig.told).await;
    assert_eq!(rig.told.recv().await, Some(None));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_keeps_its_status_where_that_says_when_to_come_again() {
    let long = "x".repeat(300);
    let kept = "x".repeat(200);
    for (code, status, body, details, says) in [
        (429, 429, "no\ncapacity \n", "saturated", "no capacity"),
        (503, 503, "", "saturated", "saturated"),
        (200, 503, "", "", ""),
        (500, 503, &*long, "", &*kept),
    ] {
        let rig = picking(ProcessingResponse {
            said: Some(Said::Immediate(ImmediateResponse {
                status: Some(HttpStatus { code }),
                body: body.into(),
                details: details.into(),
            })),
            dynamic_metadata: None,
        });
        let picked = rig.picker.pick(call(b"{}")).await;
        assert!(
            matches!(&picked, Picked::Shed(told, said) if *told == status && **said == *says),
            "{picked:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_pick_is_none() {
    let unavailable = |picked: Picked| match picked {
        Picked::Unavailable(why) => why,
        other => panic!("{other:?}"),
    };
    let nothing = picking(in_header("here, there"));
    let why = unavailable(nothing.picker.pick(call(b"{}")).await);
    assert!(why.contains("no ip:port"), "{why}");
    let ended = rig(|_| Does::End("0"));
    let why = unavailable(ended.picker.pick(call(b"")).await);
    assert!(why.contains("without a pick"), "{why}");
    let refused = rig(|_| Does::End("14"));
    let why = unavailable(refused.picker.pick(call(b"")).await);
    assert!(why.contains("gRPC status 14"), "{why}");
    let silent = rig(|_| Does::Say(Vec::new()));
    let why = unavailable(silent.picker.pick(call(b"")).await);
    assert!(why.contains("within 500ms"), "{why}");
}

#[tokio::test(start_paused = true)]
async fn one_connection_carries_all_and_a_lost_one_is_made_again() {
    let mut picks = 0;
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let rig = rig(move |request| {
        if !is_whole(request) {
            return Does::Say(Vec::new());
        }
        // The third finds that its connection goes.
        match counted.fetch_add(1, Ordering::Relaxed) {
            2 => Does::Drop,
            _ => Does::Say(vec![in_header("10.0.0.2:8000")]),
        }
    });
    for _ in 0..4 {
        let picked = rig.picker.pick(call(b"{}")).await;
        picks += addresses(&picked).len();
    }
    assert_eq!((picks, count.load(Ordering::Relaxed)), (4, 5));
    assert_eq!(rig.connections.load(Ordering::Relaxed), 2);
}
