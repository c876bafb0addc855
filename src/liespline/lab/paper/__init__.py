"""The paper's claims: runs averaged over seeds, intervals, verdicts, and the page that shows them."""
