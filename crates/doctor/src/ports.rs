//! Checks that the controller can listen on its addresses.

use crate::finding::{capital, quoted};
use crate::plan::Plan;
use crate::sockets::{TcpSocket, listening};
use crate::{Facts, Finding};
use rustix::io::Errno;
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use urtica_socket::{Address, DEFAULT_PORT, ListenError};

/// The name of this program's processes.
const URTICA: &str = "urtica";

/// The default address of the HTTP interface.
const HTTP: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 8080);

pub fn look(facts: &Facts) -> Vec<Finding> {
    let plan = &facts.plan;
    let listening = listening();
    let mut findings = Vec::new();
    for address in &plan.listen {
        findings.extend(match (address, address.listen_addr()) {
            (_, Some(socket)) => look_at_port(plan, &listening, address, socket),
            (Address::PassiveUnix(file), None) => look_at_file(address, file),
            _ => Some(Finding::problem(
                "address-to-connect-to",
                capital(&format!("{}.", ListenError::NotPassive(address.clone()))),
            )),
        });
    }
    findings.extend(look_at_http(plan, &listening));
    if findings.is_empty() {
        let shown: Vec<_> = plan.listen.iter().map(Address::to_string).collect();
        let sentence = format!("The controller can listen at {}.", shown.join(" and "));
        findings.push(Finding::ok("ports-free", sentence));
    }
    findings
}

fn look_at_port(
    plan: &Plan,
    listening: &[TcpSocket],
    address: &Address,
    socket: SocketAddr,
) -> Option<Finding> {
    let error = try_to_bind(socket).err()?;
    let next = socket.port().saturating_add(1);
    let elsewhere = address_at(address, next);
    Some(match Errno::from_io_error(&error) {
        Some(Errno::ADDRINUSE) => taken(plan, listening, address, socket, &elsewhere),
        Some(Errno::ACCESS) => Finding::problem(
            "port-forbidden",
            format!("{address}: only root may listen at ports below 1024, so the controller cannot."),
        )
        .command(plan.run_with(&[("--listen", &address_at(address, DEFAULT_PORT))])),
        Some(Errno::ADDRNOTAVAIL) => Finding::problem(
            "address-not-here",
            format!(
                "{address}: no interface of this machine has the address {}, so the controller cannot listen there.",
                socket.ip()
            ),
        )
        .command(plan.run_with(&[("--listen", &everywhere(address))])),
        _ => Finding::problem("port-unusable", format!("{address}: the controller cannot listen there: {error}.")),
    })
}

/// Binds without listening, so that clients cannot connect, and other programs can still listen.
fn try_to_bind(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())
}

fn address_at(address: &Address, port: u16) -> String {
    let mut address = address.clone();
    if let Address::PassiveTcp { port: own, .. } | Address::PassiveSsl { port: own, .. } =
        &mut address
    {
        *own = port;
    }
    address.to_string()
}

fn everywhere(address: &Address) -> String {
    let mut address = address.clone();
    if let Address::PassiveTcp { host, .. } | Address::PassiveSsl { host, .. } = &mut address {
        *host = None;
    }
    address.to_string()
}

fn taken(
    plan: &Plan,
    listening: &[TcpSocket],
    address: &Address,
    socket: SocketAddr,
    elsewhere: &str,
) -> Finding {
    let mut holders = listening
        .iter()
        .filter(|listening| listening.is_in_the_way_of(socket));
    let Some(process) = holders.find_map(TcpSocket::process) else {
        let sentence = format!(
            "{address}: port {} is taken by a program that only root can see, so the controller cannot listen there.",
            socket.port()
        );
        return Finding::problem("port-taken", sentence)
            .command(format!("ss -ltnp 'sport = :{}'", socket.port()))
            .command(plan.run_with(&[("--listen", elsewhere)]));
    };
    let (name, id) = (&process.name, process.id);
    if name == URTICA {
        let sentence = format!(
            "{address}: urtica already listens there (process {id}); a second controller cannot."
        );
        return Finding::note("port-taken-by-urtica", sentence);
    }
    let sentence = format!(
        "{address}: {name} (process {id}) listens at port {} already, so the controller cannot; end it, or listen elsewhere.",
        socket.port()
    );
    Finding::problem("port-taken", sentence).command(process.command_to_end())
}

fn look_at_http(plan: &Plan, listening: &[TcpSocket]) -> Option<Finding> {
    let address = plan.northbound.unwrap_or(HTTP);
    let mut sockets = listening.iter();
    let process = sockets
        .find(|socket| socket.is_in_the_way_of(address))?
        .process();
    let holder = match &process {
        // This program serves its own interface there.
        Some(process) if process.name == URTICA => return None,
        Some(process) => format!("{} (process {})", process.name, process.id),
        None => "a program that only root can see".to_owned(),
    };
    let sentence = format!(
        "{address}: {holder} listens there, so --northbound cannot serve HTTP at that address; end it, or use another port."
    );
    let other = address.port().saturating_add(1).to_string();
    let elsewhere = plan.run_with(&[("--northbound", &other)]);
    Some(match (plan.northbound, process) {
        (None, _) => Finding::note("http-port-taken", sentence).command(elsewhere),
        (Some(_), None) => Finding::problem("http-port-taken", sentence).command(elsewhere),
        (Some(_), Some(process)) => {
            Finding::problem("http-port-taken", sentence).command(process.command_to_end())
        }
    })
}

fn look_at_file(address: &Address, file: &Path) -> Option<Finding> {
    let folder = file.parent().filter(|folder| *folder != Path::new(""));
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let folder = folder.display().to_string();
        let sentence = format!("{address}: the folder {folder} for the socket does not exist.");
        let command = format!("mkdir -p {}", quoted(&folder));
        return Some(Finding::problem("socket-folder-missing", sentence).command(command));
    }
    let kind = fs::symlink_metadata(file).ok()?.file_type();
    if !kind.is_socket() {
        let name = quoted(&file.display().to_string());
        let sentence = format!(
            "{address}: a file with this name exists and is not a socket, so the controller cannot listen there."
        );
        let command = format!("mv {name} {name}.old");
        return Some(Finding::problem("socket-file-taken", sentence).command(command));
    }
    UnixStream::connect(file).ok()?;
    let sentence =
        format!("{address}: another program already listens there, so the controller cannot.");
    let command = format!("ss -lxp src {}", quoted(&file.display().to_string()));
    Some(Finding::problem("socket-file-taken", sentence).command(command))
}
