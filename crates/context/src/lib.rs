//! What the model is told: prompts, the repository map, packing within the budget, feedback.
