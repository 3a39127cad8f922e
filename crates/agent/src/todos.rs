use std::sync::Arc;
use journeyman_protocol::Todo;
pub struct Todos;
impl Todos { pub fn new(_: Vec<Todo>, _: Arc<dyn crate::Clock>) -> Self { Self } pub fn list(&self) -> Vec<Todo> { vec![] } pub fn add_tools(&self, _: &mut journeyman_tools::Registry) {} }
