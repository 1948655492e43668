// SPDX-License-Identifier: GPL-2.0

//! The files of the crate as modules: the paths that each names, and the items that each defines.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::Visit;

/// A path of the crate from its root, such as `verbs::mr::frwr::Mr`.
pub(crate) type CratePath = Vec<String>;

/// A path that a file names.
pub(crate) struct Named {
    /// The path, from the root of the crate.
    pub(crate) path: CratePath,
    /// The line of the file.
    pub(crate) line: usize,
}

/// A file.
#[derive(Default)]
pub(crate) struct Module {
    /// Its place, such as `rust/verbs/mr/frwr.rs`.
    pub(crate) file: String,
    /// The crate's paths that its code names, but for re-exports.
    pub(crate) named: Vec<Named>,
    /// What the file re-exports: a name, and the path behind it.
    pub(crate) exports: BTreeMap<String, CratePath>,
    /// Types that it defines.
    pub(crate) types: Vec<String>,
    /// Inherent methods that it defines: type and method.
    pub(crate) methods: Vec<(String, String)>,
    /// Methods that it calls by `.name()`, with the line of a call.
    pub(crate) calls: BTreeMap<String, usize>,
}

/// All files under `rust/` in the directory `tree`, by module path.
///
/// # Errors
///
/// A file that cannot be read or parsed, with its name.
pub(crate) fn read_all(tree: &Path) -> Result<BTreeMap<CratePath, Module>, String> {
    let mut modules = BTreeMap::new();
    let mut dirs = vec![tree.join("rust")];
    while let Some(dir) = dirs.pop() {
        let entries = fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        for entry in entries {
            let path = entry.map_err(|e| e.to_string())?.path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == "rs")
                && path.file_name().is_some_and(|n| n != "generated.rs")
            {
                let (at, module) = read(tree, &path)?;
                modules.insert(at, module);
            }
        }
    }
    Ok(modules)
}

fn read(tree: &Path, path: &Path) -> Result<(CratePath, Module), String> {
    let file = path
        .strip_prefix(tree)
        .unwrap_or(path)
        .display()
        .to_string();
    let text = fs::read_to_string(path).map_err(|e| format!("{file}: {e}"))?;
    let parsed = syn::parse_file(&text).map_err(|e| format!("{file}: {e}"))?;
    let at = module_path(&file);
    let mut reader = Reader {
        // `mod.rs` and the crate root have their children below themselves, as other files have.
        here: at.clone(),
        module: Module {
            file,
            ..Module::default()
        },
    };
    reader.visit_file(&parsed);
    Ok((at, reader.module))
}

/// `rust/verbs/mr/frwr.rs` is `verbs::mr::frwr`, `rust/verbs/mod.rs` is `verbs`.
fn module_path(file: &str) -> CratePath {
    let inner = file.trim_start_matches("rust/").trim_end_matches(".rs");
    let mut path: CratePath = inner.split('/').map(str::to_owned).collect();
    if path
        .last()
        .is_some_and(|last| last == "mod" || last == "rpcrdma")
    {
        path.pop();
    }
    path
}

struct Reader {
    /// The module that the visited code is in.
    here: CratePath,
    module: Module,
}

impl Reader {
    /// `path` from the root of the crate, if it begins with `crate`, `self` or `super`.
    fn absolute(&self, path: &[String]) -> Option<CratePath> {
        let (first, rest) = path.split_first()?;
        let mut base = match first.as_str() {
            "crate" => return Some(rest.to_vec()),
            "self" => self.here.clone(),
            "super" => self.here[..self.here.len().checked_sub(1)?].to_vec(),
            _ => return None,
        };
        for (i, segment) in rest.iter().enumerate() {
            if segment == "super" {
                base.pop()?;
            } else {
                base.extend_from_slice(&rest[i..]);
                break;
            }
        }
        Some(base)
    }

    /// Whether the file's children are other files.
    fn has_children(&self) -> bool {
        self.module.file.ends_with("/mod.rs") || self.module.file == "rust/rpcrdma.rs"
    }

    fn leaves(tree: &syn::UseTree, prefix: &mut Vec<String>, found: &mut Vec<(CratePath, String)>) {
        match tree {
            syn::UseTree::Path(p) => {
                prefix.push(p.ident.to_string());
                Self::leaves(&p.tree, prefix, found);
                prefix.pop();
            }
            syn::UseTree::Group(g) => {
                for tree in &g.items {
                    Self::leaves(tree, prefix, found);
                }
            }
            syn::UseTree::Glob(_) => found.push((prefix.clone(), "*".into())),
            syn::UseTree::Name(n) if n.ident == "self" => {
                found.push((prefix.clone(), prefix.last().cloned().unwrap_or_default()));
            }
            syn::UseTree::Name(n) => {
                let name = n.ident.to_string();
                found.push((
                    [prefix.as_slice(), std::slice::from_ref(&name)].concat(),
                    name,
                ));
            }
            syn::UseTree::Rename(r) => {
                let path = [prefix.as_slice(), &[r.ident.to_string()]].concat();
                found.push((path, r.rename.to_string()));
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        let mut found = Vec::new();
        Self::leaves(&item.tree, &mut Vec::new(), &mut found);
        let exported = !matches!(item.vis, syn::Visibility::Inherited);
        for (path, name) in found {
            let mut absolute = self.absolute(&path);
            if absolute.is_none() && self.has_children() {
                // A child, as in `pub(crate) use mr::frwr::Mr`, or a crate that is no module here.
                absolute = Some([self.here.as_slice(), &path].concat());
            }
            let Some(path) = absolute else { continue };
            if exported {
                self.module.exports.insert(name, path);
            } else {
                let line = item.span().start().line;
                self.module.named.push(Named { path, line });
            }
        }
    }

    // `pub(in crate::verbs)` uses nothing.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.here.push(item.ident.to_string());
        syn::visit::visit_item_mod(self, item);
        self.here.pop();
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if segments.len() > 1 {
            let mut absolute = self.absolute(&segments);
            if absolute.is_none() && self.has_children() {
                absolute = Some([self.here.as_slice(), &segments].concat());
            }
            if let Some(absolute) = absolute {
                self.module.named.push(Named {
                    path: absolute,
                    line: path.span().start().line,
                });
            }
        }
        syn::visit::visit_path(self, path);
    }

    // What a macro takes is not parsed; its paths are those behind `crate::`.
    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        let line = item.span().start().line;
        let tokens = item.tokens.to_string().replace(' ', "");
        for piece in tokens.split("crate::").skip(1) {
            let end = piece.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
            let path = piece[..end.unwrap_or(piece.len())]
                .split("::")
                .filter(|s| !s.is_empty())
                .map(str::to_owned)
                .collect();
            self.module.named.push(Named { path, line });
        }
        syn::visit::visit_macro(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.module.types.push(item.ident.to_string());
        syn::visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.module.types.push(item.ident.to_string());
        syn::visit::visit_item_enum(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        if let (None, syn::Type::Path(of)) = (&item.trait_, &*item.self_ty) {
            if let Some(of) = of.path.segments.last() {
                for member in &item.items {
                    if let syn::ImplItem::Fn(f) = member {
                        let method = (of.ident.to_string(), f.sig.ident.to_string());
                        self.module.methods.push(method);
                    }
                }
            }
        }
        syn::visit::visit_item_impl(self, item);
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let line = call.span().start().line;
        self.module
            .calls
            .entry(call.method.to_string())
            .or_insert(line);
        syn::visit::visit_expr_method_call(self, call);
    }
}
