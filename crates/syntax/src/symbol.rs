//! Definitions of an outline.

use std::ops::Range;

/// Maximum symbols of one text. Texts with more are generated.
pub const MAX_SYMBOLS: usize = 50_000;
/// Maximum bytes of a signature, which is shown on a line or two.
pub const MAX_SIGNATURE_BYTES: usize = 240;

/// The kind of a symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SymbolKind {
    /// A function outside of any type.
    Function,
    /// A function of a type.
    Method,
    /// A method that creates a value of its type.
    Constructor,
    /// A class, a record or an object.
    Class,
    /// A struct or a union.
    Struct,
    /// An enumeration.
    Enum,
    /// A value of an enumeration.
    Variant,
    /// An interface or a protocol.
    Interface,
    /// A trait.
    Trait,
    /// An implementation for a type, which gives it its name.
    Impl,
    /// A module or a namespace.
    Module,
    /// A type alias.
    Type,
    /// A constant.
    Constant,
    /// A variable at file level.
    Variable,
    /// A field of a type.
    Field,
    /// A property with accessors.
    Property,
    /// A macro.
    Macro,
    /// A key of a document.
    Key,
    /// A table of a document.
    Table,
    /// An element with an id.
    Element,
    /// A rule of a style sheet.
    Rule,
    /// A heading of a document.
    Heading,
}

impl SymbolKind {
    const KIND_NAMES: &[(&str, Self)] = &[
        ("function", Self::Function),
        ("method", Self::Method),
        ("constructor", Self::Constructor),
        ("class", Self::Class),
        ("struct", Self::Struct),
        ("enum", Self::Enum),
        ("variant", Self::Variant),
        ("interface", Self::Interface),
        ("trait", Self::Trait),
        ("impl", Self::Impl),
        ("module", Self::Module),
        ("type", Self::Type),
        ("constant", Self::Constant),
        ("variable", Self::Variable),
        ("field", Self::Field),
        ("property", Self::Property),
        ("macro", Self::Macro),
        ("key", Self::Key),
        ("table", Self::Table),
        ("element", Self::Element),
        ("rule", Self::Rule),
        ("heading", Self::Heading),
    ];

    /// Returns the name of the kind, in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::KIND_NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::KIND_NAMES.iter().find(|(known, _)| *known == name).map(|(_, kind)| *kind)
    }

    /// Returns true if definitions inside belong to it.
    pub(crate) fn is_type(self) -> bool {
        matches!(self, Self::Class | Self::Struct | Self::Enum | Self::Interface | Self::Trait | Self::Impl)
    }

    /// Returns true if definitions inside can't be used from outside.
    pub(crate) fn hides_definitions(self) -> bool {
        matches!(self, Self::Function | Self::Method | Self::Constructor)
    }
}

/// The visibility of a symbol, as far as its own file determines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Visibility {
    /// The language has no visibility, or it wasn't determined.
    #[default]
    Unknown = 0,
    /// Visible everywhere.
    Public = 1,
    /// Visible in the package, the crate, the module, or subclasses.
    Restricted = 2,
    /// Visible in the file or the type.
    Private = 3,
}

/// A definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Symbol {
    /// The kind of the symbol.
    pub kind: SymbolKind,
    /// The name as written, without quotes.
    pub name: String,
    /// Names of the enclosing or owning symbols, from the outside in.
    pub parents: Vec<String>,
    /// Bytes of the definition with its doc comment, attributes, decorators and `export`, without
    /// the line break after it.
    pub full: Range<usize>,
    /// Bytes of the definition without the comments and attributes before it.
    pub definition: Range<usize>,
    /// Bytes of the name.
    pub name_range: Range<usize>,
    /// Lines of `full`, 1-based and half-open.
    pub lines: Range<u32>,
    /// Line of the name, 1-based.
    pub name_line: u32,
    /// Beginning of the definition up to its body, on one line.
    pub signature: String,
    /// First sentence of the doc comment, or empty.
    pub doc: String,
    /// The visibility of the symbol.
    pub visibility: Visibility,
    /// True if the symbol is defined inside a function.
    pub local: bool,
    /// Position of the enclosing symbol in the outline.
    pub inside: Option<usize>,
}

impl Symbol {
    /// Returns the names of the parents and its own name, joined by dots.
    #[must_use]
    pub fn path(&self) -> String {
        let mut path = self.parents.join(".");
        if !path.is_empty() {
            path.push('.');
        }
        path + &self.name
    }
}
