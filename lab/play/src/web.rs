//! WebBench against a web server with a process for each connection (Apache 1.3).
//!
//! The client threads run a closed loop: connect, send a request, read the page, close, and start
//! again at once. A server process accepts, reads the request, works, sends the page, and waits for
//! the client's end of the connection before it closes its own (Apache's lingering close). The
//! client does not wait for that, so a busy server has processes that handle a request *and*
//! processes that clean up after one, both runnable.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use warmq_kernel::Workload;
use warmq_kernel::{Boot, Listener, Nic, Region, RemotePeer, Socket, Task, TaskSpec, Touch};
use warmq_machine::OutOfMemory;
use warmq_units::{Bytes, Cycles, Duration, Stream};

use crate::counter::{Counter, Counters};

const PAPER: &str = "coloring paper, how it was measured";
const OURS: &str = "assumed: the paper gives no figure";
/// Clients start spread over this time, so that they do not run in lockstep.
const START_WITHIN_US: u64 = 10_000;

warmq_config::settings_of! {
    #[derive(Clone)]
    pub(crate) struct Web(chosen, counters: &Counters) {
        link_bits: u64 = chosen.count("link_mbit") * 1_000_000,
        page: u64 = chosen.bytes("page").0,
        private_touched: u64 = chosen.bytes("private_touched").0,
        shared_touched: u64 = chosen.bytes("shared_touched").0,
        requests: Counter = counters.counter("requests"),
    }

    /// What can be set.
    pub(crate) fn settings() {
        "processes" => processes: u64, count((1, 20_000), 256, "processes"),
            "server processes (MaxClients)",
            PAPER;
        "request_cycles" => request_cycles: Cycles, count((0, 100_000_000), 200_000, "cycles"),
            "work of a process from accepting a connection to sending the page, without its memory accesses",
            "calibrated on tables 4 and 6 of the coloring paper";
        "cleanup_cycles" => cleanup_cycles: Cycles, count((0, 100_000_000), 70_000, "cycles"),
            "work of a process after the page is sent: close, log, clear its pools",
            "calibrated on tables 4 and 6 of the coloring paper";
        "private_memory" => private: Bytes, bytes((Bytes::from_kb(4), Bytes::from_kb(65_536)), Bytes::from_kb(128)),
            "private memory of each process",
            OURS;
        "private_touched", bytes((Bytes(0), Bytes::from_kb(65_536)), Bytes::from_kb(96)),
            "how much of it a request touches; a quarter is written",
            "calibrated on table 2 of the coloring paper";
        "shared_memory" => shared: Bytes, bytes((Bytes::from_kb(4), Bytes::from_kb(65_536)), Bytes::from_kb(96)),
            "code and kernel data that every request touches",
            OURS;
        "shared_touched", bytes((Bytes(0), Bytes::from_kb(65_536)), Bytes::from_kb(64)),
            "how much of it a request touches, all read",
            "calibrated on table 2 of the coloring paper";
        "documents" => documents: Bytes, bytes((Bytes::from_kb(64), Bytes::from_kb(1 << 20)), Bytes::from_kb(4_096)),
            "the pages that are served, in memory",
            "assumed: WebBench's static tree";
        "page", bytes((Bytes(1), Bytes::from_kb(1_024)), Bytes::from_kb(6)),
            "mean size of a page; sizes spread evenly from a quarter to seven quarters of it",
            "assumed: the mean of WebBench's static tree";
        "clients" => clients: u64, count((1, 20_000), 256, "clients"),
            "client threads",
            PAPER;
        "think" => think: Duration, duration((Duration::ZERO, Duration::from_s(100)), Duration::ZERO),
            "a client's pause between two requests",
            "WebBench's default";
        "cards" => cards: u64, count((1, 64), 4, "cards"),
            "network cards",
            PAPER;
        "link_mbit", count((1, 1_000_000), 1_000, "Mbit/s"),
            "bandwidth of each card's link: 100 on machine A, 1000 on machine B",
            PAPER;
        "delay" => delay: Duration, duration((Duration::ZERO, Duration::from_s(1)), Duration::from_us(100)),
            "one way through switch and client",
            OURS;
        "request" => request: Bytes, bytes((Bytes(1), Bytes::from_kb(64)), Bytes(300)),
            "size of a request",
            "assumed: WebBench's GET with its headers";
    }
}

/// What the server processes share.
struct Server {
    web: Web,
    line: u64,
    shared: Region,
    documents: Region,
    listener: Listener,
    /// The page that the client of each connection requests.
    asked: RefCell<BTreeMap<Socket, Page>>,
}

/// A page of the documents.
#[derive(Clone, Copy)]
struct Page {
    bytes: Bytes,
    first_line: u64,
}

impl Web {
    /// The page that a client requests next: its size is uniform from a quarter to seven quarters
    /// of the mean, its place uniform among the documents.
    fn next_page(&self, line: u64, wishes: &mut Stream) -> Page {
        let bytes = wishes
            .between(self.page.div_ceil(4), self.page * 7 / 4)
            .max(1);
        Page {
            bytes: Bytes(bytes),
            first_line: wishes.below(self.documents.0 / line),
        }
    }
}

impl Server {
    /// Touches `share` quarters of the memory that a request touches.
    async fn touch(&self, task: &Task, private: Region, share: u64) {
        let lines = self.web.private_touched / self.line * share / 4;
        let quarter = lines / 4;
        task.touch(Touch::read(
            self.shared,
            0,
            self.web.shared_touched / self.line * share / 4,
        ))
        .await;
        task.touch(Touch::read(private, 0, lines - quarter)).await;
        task.touch(Touch::read(private, lines - quarter, quarter).writing())
            .await;
    }
}

async fn serve(task: Task, server: Rc<Server>, private: Region) {
    loop {
        let connection = task.accept(server.listener).await;
        task.receive(connection, server.web.request).await;
        server.touch(&task, private, 3).await;
        task.compute(server.web.request_cycles).await;
        let page = server.asked.borrow()[&connection];
        let lines = page.bytes.0.div_ceil(server.line);
        task.touch(Touch::read(server.documents, page.first_line, lines))
            .await;
        task.send(connection, page.bytes).await;
        // Lingering close: waits until the client has closed its end.
        while task.receive(connection, server.web.request).await.0 > 0 {}
        server.touch(&task, private, 1).await;
        task.compute(server.web.cleanup_cycles).await;
        task.close(connection).await;
    }
}

async fn browse(client: RemotePeer, server: Rc<Server>, nic: Nic, mut wishes: Stream) {
    let web = &server.web;
    client
        .pause(Duration::from_us(wishes.below(START_WITHIN_US)))
        .await;
    loop {
        let page = web.next_page(server.line, &mut wishes);
        let connection = client.connect(server.listener, nic).await;
        server.asked.borrow_mut().insert(connection, page);
        client.send(connection, web.request).await;
        client.receive(connection, page.bytes).await;
        client.close(connection).await;
        web.requests.add(1);
        client.pause(web.think).await;
    }
}

impl Workload for Web {
    fn start(&self, boot: &mut Boot<'_>) -> Result<(), OutOfMemory> {
        let listener = boot.listener();
        let server = Rc::new(Server {
            web: self.clone(),
            line: boot.line(),
            shared: boot.region(self.shared)?,
            documents: boot.region(self.documents)?,
            listener,
            asked: RefCell::default(),
        });
        for _ in 0..self.processes {
            let (server, private) = (server.clone(), boot.region(self.private)?);
            let mm = boot.mm();
            let spec = TaskSpec::new("httpd", Some(mm));
            boot.task(spec, move |task: Task| serve(task, server, private))?;
        }
        let cards: Vec<Nic> = (0..self.cards)
            .map(|_| boot.nic(self.link_bits, self.delay))
            .collect();
        for client in 0..self.clients {
            let nic = cards[(client % self.cards) as usize];
            let wishes = boot.seed().stream(&format!("client {client}"));
            let server = server.clone();
            boot.remote(move |outside| browse(outside, server, nic, wishes));
        }
        Ok(())
    }
}
