"""Pictures that move: in the browser, as a page of their own, as films."""
