// SPDX-License-Identifier: GPL-2.0

//! Rust files.

use std::{collections::BTreeSet, str::FromStr};

use proc_macro2::{Delimiter, LexError, TokenStream, TokenTree};

/// The names in a file.
#[derive(Debug, Default)]
pub(super) struct Definitions {
    /// Names of items.
    pub(super) items: BTreeSet<String>,
    /// All identifiers.
    pub(super) words: BTreeSet<String>,
    /// Names of `#[test]` functions.
    pub(super) tests: BTreeSet<String>,
}

/// The names in a file. Tokens are enough to find them, and include those in macros.
///
/// # Errors
///
/// Those of the lexer.
pub(super) fn definitions(text: &str) -> Result<Definitions, LexError> {
    let mut definitions = Definitions::default();
    definitions.add(TokenStream::from_str(text)?);
    Ok(definitions)
}

impl Definitions {
    /// Adds the names in `tokens`. An item is the identifier after a keyword that defines one.
    fn add(&mut self, tokens: TokenStream) {
        let mut tokens = tokens.into_iter().peekable();
        let mut keyword = String::new();
        let mut is_test = false;

        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => {
                    self.add(group.stream());
                    keyword.clear();
                }
                TokenTree::Literal(_) => keyword.clear(),
                TokenTree::Punct(punct) => match (punct.as_char(), tokens.peek()) {
                    // A lifetime, such as 'static; a pointer, such as *const u8.
                    ('\'', Some(TokenTree::Ident(_))) => _ = tokens.next(),
                    ('*', Some(TokenTree::Ident(word))) if word == "const" => _ = tokens.next(),
                    ('#', Some(TokenTree::Group(group))) => {
                        is_test |= group.delimiter() == Delimiter::Bracket
                            && group.stream().to_string() == "test";
                    }
                    ('!', _) if keyword == "macro_rules" => {}
                    _ => keyword.clear(),
                },
                TokenTree::Ident(ident) => {
                    let word = ident.to_string();
                    match word.as_str() {
                        "fn" | "struct" | "enum" | "union" | "trait" | "const" | "static"
                        | "type" | "mod" | "macro_rules" => keyword = word,
                        "mut" | "unsafe" | "extern" => {}
                        _ => {
                            if !keyword.is_empty() {
                                if keyword == "fn" && is_test {
                                    self.tests.insert(word.clone());
                                }
                                is_test = false;
                                self.items.insert(word.clone());
                                keyword.clear();
                            }
                            self.words.insert(word);
                        }
                    }
                }
            }
        }
    }
}
