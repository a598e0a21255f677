//! An endpoint picker of the Gateway API Inference Extension (its protocol 1.0), asked over `ext_proc`.
//!
//! It is sent the head and the body of a request as they came, and answers with addresses, in a header or in metadata; when the answer to
//! the request begins, it is told which address served, and may say fields of that answer. The rest of the stream is its own: changes to the
//! request's other headers or to bodies are not made.
//! Invariant: an address is `ip:port`; what is none is passed over, and without any there is no pick. A stream that waits for an answer is
//! ended when nobody serves the call.
//! Not here: which addresses are of the pool, and what follows (`policy`).

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use policy::attribution::is_unseen;
use policy::caller::Later;
use policy::picker::{Field, Picked, PickedCall, Picker, Served};
use policy::wire::head::ResponseHead;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::added;
use super::messages::{
    HeaderMap, HeaderValue, HttpBody, HttpHeaders, ImmediateResponse, Kind, Metadata,
    ProcessingRequest, ProcessingResponse, ProtocolConfiguration, Said, Step, Struct, Value,
};
use super::{Processor, Sending, Stream};
use crate::fault::Fault;
use crate::questions::Questions;
use crate::service::Handle;
use crate::tls::Tls;
use crate::url::Url;

/// Where the pick stands, as a header and in metadata.
const PICKED: &str = "x-gateway-destination-endpoint";
/// Where it is told which endpoint served.
const SERVED: &str = "x-gateway-destination-endpoint-served";
/// Whose metadata both are.
const NAMESPACE: &str = "envoy.lb";
/// The most of a body in one message; servers take 4 MiB as a rule.
const PIECE_BYTES: usize = 64 << 10;
/// Both directions at one time.
const FULL_DUPLEX: i32 = 4;
/// How long the end of a stream may take once the picker knows who served.
const END_WITHIN: Duration = Duration::from_secs(1);

/// Who is asked, and how.
#[derive(Debug, Clone)]
pub struct PickerSettings {
    /// Its address.
    pub url: Url,
    /// Trust in it.
    pub tls: Tls,
    /// How long a call waits for it.
    pub within: Duration,
    /// Whether a call goes on by the gate's own choice where it does not answer.
    pub fails_open: bool,
    /// Whether header fields that it adds to answers go to clients.
    pub adds_fields: bool,
}

/// The way to one endpoint picker.
#[derive(Clone)]
pub struct EndpointPicker {
    processor: Arc<Processor>,
    handle: Handle,
    questions: Arc<Questions>,
    within: Duration,
    fails_open: bool,
    adds_fields: bool,
}

impl fmt::Debug for EndpointPicker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut of = f.debug_tuple("EndpointPicker");
        of.field(&self.processor).finish()
    }
}

impl EndpointPicker {
    /// One that has asked nothing yet; questions are counted there.
    ///
    /// # Errors
    /// Its address fits no request.
    pub fn new(
        handle: &Handle,
        settings: &PickerSettings,
        questions: Arc<Questions>,
    ) -> Result<Self, Fault> {
        let processor = Processor::new(&settings.url, &settings.tls)?;
        Ok(Self::over(processor, handle, settings, questions))
    }

    pub(super) fn over(
        processor: Processor,
        handle: &Handle,
        settings: &PickerSettings,
        questions: Arc<Questions>,
    ) -> Self {
        Self {
            processor: Arc::new(processor),
            handle: handle.clone(),
            questions,
            within: settings.within,
            fails_open: settings.fails_open,
            adds_fields: settings.adds_fields,
        }
    }
}

impl Picker for EndpointPicker {
    fn pick(&self, call: PickedCall) -> Later<Picked> {
        let (processor, questions) = (Arc::clone(&self.processor), Arc::clone(&self.questions));
        let adds_fields = self.adds_fields;
        let (asking, before) = (Arc::clone(&self.processor), processor.heard());
        let asked = self.handle.ask(self.within, async move {
            let picked = ask(&processor, &call, adds_fields).await;
            // One that was kept may have gone unnoticed.
            match picked {
                Err((Fault::Broken(_), true)) => {
                    processor.forget();
                    ask(&processor, &call, adds_fields).await
                }
                picked => picked,
            }
            .map_err(|(fault, _)| fault)
        });
        Box::pin(async move {
            let picked = asked.await;
            // Its machine may be gone without a word, while another of the same name would answer.
            if matches!(picked, Err(Fault::Late { .. })) && asking.heard() == before {
                asking.forget();
            }
            questions.note(picked.is_ok());
            picked.unwrap_or_else(|fault| Picked::Unavailable(fault.to_string().into()))
        })
    }

    fn fails_open(&self) -> bool {
        self.fails_open
    }
}

/// Asks once; of a fault it is told whether the connection was kept.
async fn ask(
    processor: &Processor,
    call: &PickedCall,
    adds_fields: bool,
) -> Result<Picked, (Fault, bool)> {
    let (mut stream, was_kept) = processor.open().await.map_err(|fault| (fault, false))?;
    let sending = stream.sending().map_err(|fault| (fault, was_kept))?;
    // What cannot be sent any more is told by the answer.
    let sent = async {
        drop(send(&sending, call).await);
        std::future::pending::<Infallible>().await
    };
    let picked = tokio::select! {
        never = sent => match never {},
        picked = picked(&mut stream) => picked,
    };
    let answer = match picked.map_err(|fault| (fault, was_kept))? {
        Answer::Endpoints(endpoints) => endpoints,
        Answer::Shed(status, says) => return Ok(Picked::Shed(status, says)),
    };
    let (tell, told) = oneshot::channel();
    tokio::spawn(await_end(stream, sending, told));
    Ok(Picked::Endpoints(
        answer,
        Box::new(Waiting { tell, adds_fields }),
    ))
}

/// What a picker says.
enum Answer {
    Endpoints(Vec<SocketAddr>),
    Shed(u16, Box<str>),
}

/// Most characters of what a picker says that are kept.
const SAYS_CHARS: usize = 200;

/// Why a picker refuses a call, in its own words: the body of its answer, or else its details. What cannot be seen is a space.
fn says(immediate: &ImmediateResponse) -> Box<str> {
    let body = String::from_utf8_lossy(&immediate.body);
    let text = match body.trim() {
        "" => immediate.details.trim(),
        text => text,
    };
    let seen = |c: char| if is_unseen(c) { ' ' } else { c };
    text.chars().take(SAYS_CHARS).map(seen).collect()
}

/// Sends the call: its head, and its body in pieces.
async fn send(sending: &Sending, call: &PickedCall) -> Result<(), Fault> {
    let mut pieces: Vec<Bytes> = Vec::new();
    for piece in &call.body {
        let mut piece = piece.clone();
        while !piece.is_empty() {
            pieces.push(piece.split_to(PIECE_BYTES.min(piece.len())));
        }
    }
    let headers = call.headers.iter();
    let headers = headers.map(|(name, value)| header(name, value));
    let head = Step::RequestHeaders(HttpHeaders {
        headers: Some(HeaderMap {
            headers: headers.collect(),
        }),
        end_of_stream: pieces.is_empty(),
    });
    let protocol_config = Some(ProtocolConfiguration {
        request_body_mode: FULL_DUPLEX,
        response_body_mode: 0,
    });
    let request = ProcessingRequest {
        step: Some(head),
        metadata_context: None,
        protocol_config,
    };
    sending.send(&request).await?;
    let last = pieces.len();
    for (body, nth) in pieces.into_iter().zip(1..) {
        let step = Step::RequestBody(HttpBody {
            body,
            end_of_stream: nth == last,
        });
        let request = ProcessingRequest {
            step: Some(step),
            ..ProcessingRequest::default()
        };
        sending.send(&request).await?;
    }
    Ok(())
}

/// Reads until the pick is there, or a refusal.
async fn picked(stream: &mut Stream) -> Result<Answer, Fault> {
    while let Some(response) = stream.next().await? {
        if let Some(Said::Immediate(immediate)) = &response.said {
            let code = immediate.status.map_or(0, |status| status.code);
            let status = if code == 429 { 429 } else { 503 };
            return Ok(Answer::Shed(status, says(immediate)));
        }
        if let Some(list) = list(&response) {
            let addresses = list.split(',').map(str::trim);
            let addresses: Vec<SocketAddr> =
                addresses.filter_map(|text| text.parse().ok()).collect();
            return match addresses.is_empty() {
                true => Err(Fault::Garbage("it names no ip:port")),
                false => Ok(Answer::Endpoints(addresses)),
            };
        }
    }
    Err(Fault::Garbage("it ended without a pick"))
}

/// The list of addresses that a message has: in a header, or else in metadata.
fn list(response: &ProcessingResponse) -> Option<String> {
    let said = match response.said.as_ref() {
        Some(Said::RequestHeaders(said) | Said::RequestBody(said)) => said.response.as_ref(),
        _ => None,
    };
    let set = said.and_then(|said| said.header_mutation.as_ref());
    let mut headers = set.iter().flat_map(|of| &of.set_headers);
    let in_header = headers.find_map(|option| {
        let header = option.header.as_ref()?;
        header.key.eq_ignore_ascii_case(PICKED).then_some(())?;
        match header.raw_value.as_slice() {
            [] => Some(header.value.clone()),
            raw => String::from_utf8(raw.to_vec()).ok(),
        }
    });
    in_header.or_else(|| {
        let metadata = response.dynamic_metadata.as_ref()?;
        let Kind::Struct(namespace) = metadata.fields.get(NAMESPACE)?.kind.as_ref()? else {
            return None;
        };
        match namespace.fields.get(PICKED)?.kind.as_ref()? {
            Kind::Text(list) => Some(list.clone()),
            Kind::Struct(_) => None,
        }
    })
}

/// Told which endpoint served, and how its answer begins.
struct Waiting {
    tell: oneshot::Sender<Report>,
    adds_fields: bool,
}

struct Report {
    endpoint: String,
    headers: Vec<HeaderValue>,
    /// Told what is added to the answer, where somebody waits for that.
    added: Option<oneshot::Sender<Vec<Field>>>,
}

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiting")
    }
}

impl Served for Waiting {
    fn tell(self: Box<Self>, endpoint: &str, head: &ResponseHead) -> Option<Later<Vec<Field>>> {
        let status = header(b":status", head.status.to_string().as_bytes());
        let fields = head.fields.iter();
        let fields = fields.filter(|field| field.name != b"set-cookie");
        let fields = fields.map(|field| header(field.name, field.value));
        let (added, waits) = match self.adds_fields {
            true => {
                let (added, waits) = oneshot::channel();
                (Some(added), Some(waits))
            }
            false => (None, None),
        };
        let report = Report {
            endpoint: endpoint.to_owned(),
            headers: std::iter::once(status).chain(fields).collect(),
            added,
        };
        // The thread that asks has ended, perhaps.
        let _gone = self.tell.send(report);
        let waits = waits?;
        Some(Box::pin(async { waits.await.unwrap_or_default() }))
    }
}

/// Tells the picker who served, once that is known, and reads the stream to its end.
async fn await_end(mut stream: Stream, sending: Sending, told: oneshot::Receiver<Report>) {
    let Some(report) = heard(&mut stream, told).await else {
        return;
    };
    let text = |text: String| Value {
        kind: Some(Kind::Text(text)),
    };
    let served = Struct {
        fields: [(SERVED.to_owned(), text(report.endpoint))].into(),
    };
    let request = ProcessingRequest {
        step: Some(Step::ResponseHeaders(HttpHeaders {
            headers: Some(HeaderMap {
                headers: report.headers,
            }),
            // Its body is not shown.
            end_of_stream: true,
        })),
        metadata_context: Some(Metadata {
            filter_metadata: [(NAMESPACE.to_owned(), served)].into(),
        }),
        protocol_config: None,
    };
    let mut added = report.added;
    let end = async {
        if sending.send(&request).await.is_err() {
            return;
        }
        drop(sending);
        stream.end();
        while let Ok(Some(response)) = stream.next().await {
            if let Some(Said::ResponseHeaders(said)) = &response.said
                && let Some(added) = added.take()
            {
                // Its client has left, perhaps.
                let _gone = added.send(added::fields(said));
            }
        }
    };
    let _slow = timeout(END_WITHIN, end).await;
}

/// Waits for the report, and meanwhile reads what else the picker says, so that it can go on. `None`: nobody serves the call, or the
/// stream has ended.
async fn heard(stream: &mut Stream, mut told: oneshot::Receiver<Report>) -> Option<Report> {
    loop {
        tokio::select! {
            report = &mut told => return report.ok(),
            said = stream.next() => match said {
                Ok(Some(_)) => {}
                Ok(None) | Err(_) => return None,
            },
        }
    }
}

fn header(name: &[u8], value: &[u8]) -> HeaderValue {
    HeaderValue {
        key: String::from_utf8_lossy(name).into_owned(),
        value: String::new(),
        raw_value: value.to_vec(),
    }
}
