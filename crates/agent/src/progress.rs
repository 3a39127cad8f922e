#[derive(Default)] pub struct Guard;
