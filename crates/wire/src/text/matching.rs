//! Matches: `tcp,in_port=1,dl_vlan=5,nw_dst=10.0.0.0/8,tp_dst=80`.

use super::ParseError;
use super::field::{self, Context, Name, PROTOCOLS, Protocol};
use super::item::{Item, Span};
use super::value::{self, Form};
use crate::{Field, Match, OxmField, RawField, VLAN_PRESENT, Version};
use std::fmt::{self, Write};
use std::str::FromStr;

/// Parses the fields of a match, with commas or white space between them.
///
/// `ip`, `tcp`, `arp` and similar words stand for an Ethernet type and an IP protocol. A field with a mask of zeros, or with
/// the value `*`, is omitted.
impl FromStr for Match<'static> {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let mut items = MatchItems::default();
        for span in Span::new(text).items() {
            items.push(span.item()?);
        }
        items.finish(no_more_words())
    }
}

/// Writes the fields with the names and in the order of `ovs-ofctl dump-flows`; a match on every packet is an empty text.
impl fmt::Display for Match<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_match(f, self, Version::Of13)
    }
}

fn no_more_words() -> impl Iterator<Item = &'static str> {
    std::iter::empty()
}

/// The items of a match in a text, collected until their protocol is known.
#[derive(Default)]
pub(super) struct MatchItems<'t>(Vec<Item<'t>>);

impl<'t> MatchItems<'t> {
    pub(super) fn push(&mut self, item: Item<'t>) {
        self.0.push(item);
    }

    /// Creates the match. `more_words` are other words that the text could contain.
    pub(super) fn finish(
        mut self,
        more_words: impl Iterator<Item = &'static str>,
    ) -> Result<Match<'static>, ParseError> {
        self.0.sort_by_key(stage);
        let mut builder = Builder::default();
        for item in &self.0 {
            match (protocol_of(item.name()), Key::of(item.name())) {
                (Some(protocol), _) => builder.add_protocol(item, protocol)?,
                (None, Some(key)) => builder.add(item, key)?,
                (None, None) => return Err(unknown(item, more_words)),
            }
        }
        Ok(builder.finish())
    }
}

/// Returns an item's place in the order of parsing: items on which others depend are first, the Ethernet type before the IP
/// protocol.
fn stage(item: &Item<'_>) -> u8 {
    match item.name() {
        "dl_type" | "eth_type" => 0,
        name if protocol_of(name).is_some() => 0,
        "nw_proto" | "ip_proto" => 1,
        _ => 2,
    }
}

/// Match fields of Open vSwitch that OpenFlow does not define. Names that end with a digit are listed without it.
const FIELDS_OF_OPEN_VSWITCH: &[&str] = &[
    "tcp_flags",
    "nw_frag",
    "ip_frag",
    "nw_ttl",
    "ct_state",
    "ct_zone",
    "ct_mark",
    "ct_label",
    "ct_nw_src",
    "ct_nw_dst",
    "ct_nw_proto",
    "ct_ipv6_src",
    "ct_ipv6_dst",
    "ct_tp_src",
    "ct_tp_dst",
    "reg",
    "xreg",
    "xxreg",
    "tun_src",
    "tun_dst",
    "tun_flags",
    "tun_metadata",
    "pkt_mark",
    "conj_id",
    "dp_hash",
    "recirc_id",
    "actset_output",
    "packet_type",
];

fn is_of_open_vswitch(name: &str) -> bool {
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    FIELDS_OF_OPEN_VSWITCH.contains(&stem)
}

fn unknown(item: &Item<'_>, more_words: impl Iterator<Item = &'static str>) -> ParseError {
    if is_of_open_vswitch(item.name()) {
        return item.key.error(
            "is a field of Open vSwitch, not of OpenFlow",
            "a field of OpenFlow, such as in_port, dl_dst or nw_src",
        );
    }
    let error = item.key.error(
        "is not a match field or keyword",
        "one such as in_port, dl_dst, tcp or nw_src",
    );
    error.or_did_you_mean(words().chain(more_words))
}

/// Returns every word that a match may contain.
fn words() -> impl Iterator<Item = &'static str> {
    let protocols = PROTOCOLS.iter().map(|protocol| protocol.name);
    let special = KEYS.iter().map(|(name, _)| *name);
    let names = field::NAMES.iter();
    protocols
        .chain(special)
        .chain(names.flat_map(|name| [name.dump, name.set, name.field.name()]))
}

/// The meaning of a name that may stand for several fields.
#[derive(Clone, Copy)]
enum Key {
    Field(&'static Name),
    /// One of two fields: for ARP, and for IP.
    ArpOrIp(OxmField, OxmField),
    /// `tp_src` (side 0) or `tp_dst` (side 1).
    Transport(usize),
    /// `icmp_type` (side 0) or `icmp_code` (side 1).
    Icmp(usize),
    /// The DSCP in the six upper bits of a byte.
    Tos,
    DlVlan,
    DlVlanPcp,
    VlanTci,
}

const KEYS: &[(&str, Key)] = &[
    ("nw_src", Key::ArpOrIp(OxmField::ArpSpa, OxmField::Ipv4Src)),
    ("nw_dst", Key::ArpOrIp(OxmField::ArpTpa, OxmField::Ipv4Dst)),
    ("nw_proto", Key::ArpOrIp(OxmField::ArpOp, OxmField::IpProto)),
    ("tp_src", Key::Transport(0)),
    ("tp_dst", Key::Transport(1)),
    ("icmp_type", Key::Icmp(0)),
    ("icmp_code", Key::Icmp(1)),
    ("nw_tos", Key::Tos),
    ("dl_vlan", Key::DlVlan),
    ("dl_vlan_pcp", Key::DlVlanPcp),
    ("vlan_tci", Key::VlanTci),
];

impl Key {
    fn of(name: &str) -> Option<Self> {
        let special = KEYS.iter().find(|(key, _)| *key == name);
        special
            .map(|(_, key)| *key)
            .or_else(|| field::by_name(name).map(Key::Field))
    }
}

fn protocol_of(name: &str) -> Option<&'static Protocol> {
    PROTOCOLS.iter().find(|protocol| protocol.name == name)
}

/// A match being parsed.
#[derive(Default)]
struct Builder {
    fields: Vec<Field<'static>>,
    /// Whether some part requires a VLAN tag.
    needs_vlan: bool,
}

impl Builder {
    fn add_protocol(&mut self, item: &Item<'_>, protocol: &Protocol) -> Result<(), ParseError> {
        item.no_value()?;
        self.set(
            item,
            Field::exact(OxmField::EthType, protocol.eth_type.into()),
        )?;
        match protocol.ip_proto {
            Some(number) => self.set(item, Field::exact(OxmField::IpProto, number.into())),
            None => Ok(()),
        }
    }

    fn add(&mut self, item: &Item<'_>, key: Key) -> Result<(), ParseError> {
        match key {
            Key::Field(name) => self.add_field(item, name.field),
            Key::ArpOrIp(arp, ip) => self.add_arp_or_ip(item, arp, ip),
            Key::Transport(side) => self.add_transport(item, side),
            Key::Icmp(side) => self.add_icmp(item, side),
            Key::Tos => self.add_tos(item),
            Key::DlVlan => self.add_dl_vlan(item),
            Key::DlVlanPcp => self.add_dl_vlan_pcp(item),
            Key::VlanTci => self.add_vlan_tci(item),
        }
    }

    fn add_field(&mut self, item: &Item<'_>, field: OxmField) -> Result<(), ParseError> {
        if item.value()?.text() == "*" {
            return Ok(());
        }
        let parsed = parse_field(item, field, field::place_and_name(field).1.form)?;
        match parsed {
            Field::Basic { mask: 0, .. } => Ok(()),
            _ => self.set(item, parsed),
        }
    }

    /// Adds a field whose name depends on the Ethernet type, unless it is a wildcard.
    fn add_arp_or_ip(
        &mut self,
        item: &Item<'_>,
        arp: OxmField,
        ip: OxmField,
    ) -> Result<(), ParseError> {
        let context = self.context();
        let fields_before = self.fields.len();
        self.add_field(item, if context.is_arp() { arp } else { ip })?;
        let is_added = self.fields.len() > fields_before;
        let expected = match ip {
            _ if !is_added || context.is_arp() => return Ok(()),
            OxmField::IpProto if context.is_ip() => return Ok(()),
            _ if context.eth_type == Some(field::IPV4) => return Ok(()),
            OxmField::IpProto => "one of ip, ipv6, arp with it",
            _ => "one of ip, arp or a protocol of IPv4, such as tcp, with it",
        };
        Err(item.key.error(NO_PROTOCOL, expected))
    }

    fn add_transport(&mut self, item: &Item<'_>, side: usize) -> Result<(), ParseError> {
        match self.context().transport() {
            Some(transport) => self.add_field(item, transport.fields[side]),
            None => Err(item.key.error(
                NO_PROTOCOL,
                "one of tcp, udp, sctp, icmp, tcp6, udp6, sctp6, icmp6 with it",
            )),
        }
    }

    fn add_icmp(&mut self, item: &Item<'_>, side: usize) -> Result<(), ParseError> {
        match self.context().transport() {
            Some(transport) if transport.names[side] == item.name() => {
                self.add_field(item, transport.fields[side])
            }
            _ => Err(item.key.error(NO_PROTOCOL, "icmp or icmp6 with it")),
        }
    }

    fn add_tos(&mut self, item: &Item<'_>) -> Result<(), ParseError> {
        let dscp = parse_tos(item.value()?)?;
        self.set(item, Field::exact(OxmField::IpDscp, dscp.into()))
    }

    fn add_dl_vlan(&mut self, item: &Item<'_>) -> Result<(), ParseError> {
        let vid = match item.value()?.u16()? {
            NO_VLAN => 0,
            vid if vid < VLAN_PRESENT => vid | VLAN_PRESENT,
            _ => {
                return Err(item
                    .value()?
                    .error("is not a VLAN id", "0 to 4095, or 0xffff for no tag"));
            }
        };
        self.set(item, Field::exact(OxmField::VlanVid, vid.into()))
    }

    fn add_dl_vlan_pcp(&mut self, item: &Item<'_>) -> Result<(), ParseError> {
        let pcp = item.value()?.number(OxmField::VlanPcp.bits())?;
        self.needs_vlan = true;
        self.set(item, Field::exact(OxmField::VlanPcp, pcp))
    }

    fn add_vlan_tci(&mut self, item: &Item<'_>) -> Result<(), ParseError> {
        let (value, mask) = item.value_and_mask()?;
        let tci = value.u16()?;
        let tci_mask = mask.map_or(Ok(0xffff), Span::u16)?;
        match tci_mask & TCI_PCP {
            0 => {}
            // An untagged packet has no priority.
            TCI_PCP if tci & !TCI_ID == 0 && tci_mask & VLAN_PRESENT != 0 => {}
            TCI_PCP => self.set(item, Field::exact(OxmField::VlanPcp, (tci >> 13).into()))?,
            _ => {
                let problem = "masks a part of the priority";
                return Err(item.key.error(problem, "a mask with all of 0xe000 or none"));
            }
        }
        match tci_mask & TCI_VID {
            0 => Ok(()),
            mask => self.set(
                item,
                Field::masked(OxmField::VlanVid, tci.into(), mask.into()),
            ),
        }
    }

    fn has(&self, wanted: OxmField) -> bool {
        self.fields
            .iter()
            .any(|field| field.oxm_field() == Some(wanted))
    }

    /// Adds a field, which must be the first of its kind or equal to an earlier one.
    fn set(&mut self, item: &Item<'_>, added: Field<'static>) -> Result<(), ParseError> {
        let earlier = self
            .fields
            .iter()
            .find(|field| field.oxm_field() == added.oxm_field());
        match earlier {
            Some(earlier) if *earlier == added => Ok(()),
            Some(_) => Err(item.key.error(
                "contradicts an earlier part of the match",
                "one value for each field",
            )),
            None => {
                self.fields.push(added);
                Ok(())
            }
        }
    }

    fn context(&self) -> Context {
        context_of(self.fields.iter().copied())
    }

    fn finish(mut self) -> Match<'static> {
        if self.needs_vlan && !self.has(OxmField::VlanVid) {
            self.fields.push(any_vlan());
        }
        Match::from(self.fields)
    }
}

/// The problem of a field whose name needs a protocol.
const NO_PROTOCOL: &str = "depends on a protocol that this match does not name";
/// The value of `dl_vlan` that means "no tag".
const NO_VLAN: u16 = 0xffff;
/// The priority's bits in a tag control field.
const TCI_PCP: u16 = 0xe000;
/// The bits of `vlan_vid` in it: the id, and the presence of a tag.
const TCI_VID: u16 = !TCI_PCP;
/// The id's bits.
const TCI_ID: u16 = 0x0fff;

/// Creates a match on any VLAN tag.
fn any_vlan() -> Field<'static> {
    Field::masked(OxmField::VlanVid, VLAN_PRESENT.into(), VLAN_PRESENT.into())
}

/// Parses the type of service byte, of which only the six bits of the DSCP may be set.
pub(super) fn parse_tos(value: Span<'_>) -> Result<u8, ParseError> {
    match value.u8()? {
        tos if tos & 3 == 0 => Ok(tos >> 2),
        _ => Err(value.error(
            "has bits of the ECN set",
            "a multiple of four; the ECN is a field of its own, nw_ecn",
        )),
    }
}

/// Parses `value[/mask]` of a field.
pub(super) fn parse_field(
    item: &Item<'_>,
    field: OxmField,
    form: Form,
) -> Result<Field<'static>, ParseError> {
    let (value, mask) = item.value_and_mask()?;
    let value = value::parse(value, field, form)?;
    let Some(mask) = mask else {
        return Ok(Field::exact(field, value));
    };
    match value::parse_mask(mask, field, form)? {
        part if part != field.full_mask() && part != 0 && !field.maskable() => {
            Err(mask.error("masks a field that OpenFlow does not mask", "no mask"))
        }
        part => Ok(Field::masked(field, value, part)),
    }
}

/// Returns the Ethernet type and IP protocol in the fields.
fn context_of<'a>(fields: impl Iterator<Item = Field<'a>>) -> Context {
    let mut context = Context::default();
    for field in fields {
        match field {
            Field::Basic { field, value, mask } if mask == field.full_mask() => match field {
                OxmField::EthType => context.eth_type = Some(value as u16),
                OxmField::IpProto => context.ip_proto = Some(value as u8),
                _ => {}
            },
            _ => {}
        }
    }
    context
}

/// Writes a match as `ovs-ofctl` does for messages of `version`.
pub(super) fn write_match(
    out: &mut dyn Write,
    match_: &Match<'_>,
    version: Version,
) -> fmt::Result {
    let mut writer = MatchWriter::new(out, match_, version);
    writer.write_protocol()?;
    writer.write_fields()
}

/// A match being written, from whose `fields` the written ones are removed.
struct MatchWriter<'o, 'a> {
    out: &'o mut dyn Write,
    fields: Vec<Field<'a>>,
    context: Context,
    version: Version,
    separator: &'static str,
}

impl<'o, 'a> MatchWriter<'o, 'a> {
    fn new(out: &'o mut dyn Write, match_: &Match<'a>, version: Version) -> Self {
        let mut fields: Vec<_> = match_.fields().collect();
        fields.sort_by_key(|field| match field.oxm_field() {
            Some(field) => field::place_and_name(field).0,
            None => usize::MAX,
        });
        let context = context_of(fields.iter().copied());
        Self {
            out,
            fields,
            context,
            version,
            separator: "",
        }
    }

    /// Writes the word for the protocol, if any, instead of its fields.
    fn write_protocol(&mut self) -> fmt::Result {
        let Context { eth_type, ip_proto } = self.context;
        let word = PROTOCOLS.iter().find(|protocol| {
            Some(protocol.eth_type) == eth_type
                && (protocol.ip_proto.is_none() || protocol.ip_proto == ip_proto)
        });
        let Some(word) = word else { return Ok(()) };
        self.fields.retain(|field| match field.oxm_field() {
            Some(OxmField::EthType) => false,
            Some(OxmField::IpProto) => word.ip_proto.is_none(),
            _ => true,
        });
        self.separate()?;
        self.out.write_str(word.name)
    }

    fn write_fields(&mut self) -> fmt::Result {
        let mut tci = Tci::of(&self.fields);
        for field in std::mem::take(&mut self.fields) {
            match (field, tci) {
                (Field::Basic { field, .. }, Some(whole)) if is_vlan(field) => {
                    self.write_tci(whole)?;
                    tci = Some(Tci::WRITTEN);
                }
                (Field::Basic { field, value, mask }, _) => self.write_field(field, value, mask)?,
                (Field::Raw(raw), _) => self.write_raw(&raw)?,
            }
        }
        Ok(())
    }

    fn separate(&mut self) -> fmt::Result {
        self.out.write_str(self.separator)?;
        self.separator = ",";
        Ok(())
    }

    fn write_field(&mut self, field: OxmField, value: u128, mask: u128) -> fmt::Result {
        self.separate()?;
        let full = field.full_mask();
        let name = field::place_and_name(field).1;
        if field == OxmField::IpDscp && mask == full {
            return write!(self.out, "nw_tos={}", value << 2);
        }
        write!(self.out, "{}=", self.context.name_of(name))?;
        match name.form {
            // Like C's `%#x`, and Open vSwitch.
            Form::Hex(1) if value == 0 => {
                self.out.write_char('0')?;
                match mask {
                    mask if mask == full => Ok(()),
                    mask => write!(self.out, "/{mask:#x}"),
                }
            }
            form => value::write(self.out, form, value, mask, full),
        }
    }

    fn write_tci(&mut self, tci: Tci) -> fmt::Result {
        let Tci { value, mask } = tci;
        if mask == 0 {
            return Ok(());
        }
        self.separate()?;
        let (vid, pcp) = (mask & TCI_ID, mask & TCI_PCP);
        if value & VLAN_PRESENT == 0 || !matches!(vid, 0 | TCI_ID) || vid | pcp == 0 {
            return match (mask, self.version) {
                (0xffff, _) | (TCI_VID, Version::Of10) => {
                    write!(self.out, "vlan_tci=0x{value:04x}")
                }
                _ => write!(self.out, "vlan_tci=0x{value:04x}/0x{mask:04x}"),
            };
        }
        if vid != 0 {
            write!(self.out, "dl_vlan={}", value & TCI_ID)?;
        }
        if pcp != 0 {
            let comma = if vid == 0 { "" } else { "," };
            write!(self.out, "{comma}dl_vlan_pcp={}", value >> 13)?;
        }
        Ok(())
    }

    fn write_raw(&mut self, raw: &RawField<'_>) -> fmt::Result {
        self.separate()?;
        write!(self.out, "oxm({:#06x},{},", raw.class, raw.field)?;
        write_hex(self.out, raw.body)?;
        self.out.write_char(')')
    }
}

fn is_vlan(field: OxmField) -> bool {
    matches!(field, OxmField::VlanVid | OxmField::VlanPcp)
}

/// VLAN id and priority as in Open vSwitch: a tag control field with a mask.
#[derive(Clone, Copy)]
struct Tci {
    value: u16,
    mask: u16,
}

impl Tci {
    /// The state after everything is written.
    const WRITTEN: Self = Self { value: 0, mask: 0 };

    /// Returns the fields' match on the tag; `None` if only the specification's names can express it: a priority without a match
    /// on the tag itself or without a tag, or a masked priority.
    fn of(fields: &[Field<'_>]) -> Option<Self> {
        let mut tci = Self::WRITTEN;
        for field in fields {
            match *field {
                Field::Basic {
                    field: OxmField::VlanVid,
                    value,
                    mask,
                } => {
                    tci.value |= value as u16;
                    tci.mask |= mask as u16;
                }
                Field::Basic {
                    field: OxmField::VlanPcp,
                    value,
                    mask,
                } => {
                    tci.value |= (value as u16) << 13;
                    tci.mask |= (mask as u16) << 13;
                }
                _ => {}
            }
        }
        let about_tag = tci.mask & TCI_VID != 0;
        let whole_pcp = matches!(tci.mask & TCI_PCP, 0 | TCI_PCP);
        let pcp_without_tag = tci.mask & !TCI_ID == !TCI_ID && tci.value & !TCI_ID == 0;
        (about_tag && whole_pcp && !pcp_without_tag).then_some(tci)
    }
}

/// Writes bytes as hex digits.
pub(super) fn write_hex(out: &mut dyn Write, bytes: &[u8]) -> fmt::Result {
    bytes.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
}

#[cfg(test)]
mod tests;
