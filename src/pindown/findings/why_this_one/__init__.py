"""Why did training choose it? Theorems that apply, margins, features, the tangent kernel."""
