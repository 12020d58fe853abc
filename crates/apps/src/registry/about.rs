//! The registry's description of a program.

/// The description of a program that `urtica run` accepts by name.
#[derive(Clone, Copy)]
pub(crate) struct About {
    pub name: &'static str,
    /// One line for the help text.
    pub text: &'static str,
    pub forwards: Forwards,
    pub sees: Sees,
    /// The service that the program is, if other programs can use it.
    pub service: Option<Service>,
    /// Whether the program answers for its own addresses: then the neighbour proxy must not.
    pub has_gateways: bool,
}

impl About {
    /// Describes a program that forwards no packets, and sees the packets that earlier programs leave.
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            forwards: Forwards::Nothing,
            sees: Sees::Unanswered,
            service: None,
            has_gateways: false,
        }
    }

    /// Describes a program that forwards every packet.
    pub const fn forwarder(name: &'static str, text: &'static str) -> Self {
        Self {
            forwards: Forwards::All,
            ..Self::new(name, text)
        }
    }

    /// Describes a service.
    pub const fn service(service: Service, text: &'static str) -> Self {
        Self {
            service: Some(service),
            sees: Sees::FirstOfFlow,
            ..Self::new(service.name(), text)
        }
    }
}

/// The packets that a program forwards.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Forwards {
    Nothing,
    /// These packets; later programs handle the others.
    Only(&'static str),
    /// All packets: later programs see no packet-in.
    All,
}

/// The packet-ins that a program has to see.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sees {
    /// All packet-ins: the program is added before all others, and the kernel may not answer instead of it.
    Everything,
    /// The packet-ins that no earlier program answers.
    Unanswered,
    /// The first packet-in of each flow: the kernel may answer the others.
    FirstOfFlow,
}

/// A service that programs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Discovery,
    Hosts,
    NeighbourProxy,
    Provisioner,
    Routes,
}

impl Service {
    /// Returns the service's name for `urtica run`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Discovery => "discovery",
            Self::Hosts => "hosts",
            Self::NeighbourProxy => "neighbour-proxy",
            Self::Provisioner => "provisioner",
            Self::Routes => "routes",
        }
    }
}
