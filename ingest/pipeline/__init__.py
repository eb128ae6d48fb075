"""The pipeline that shifts documents of any client: installed, verified, removed."""
