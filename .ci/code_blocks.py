"""Check in a browser that no code block of the built documentation is cut off or wrapped at a width of 1300 px.

Usage:  python .ci/code_blocks.py docs/_build

Needs Playwright and Chromium. The script prints each page with the number of faulty blocks, and exits with 1 if there
are any. A block with a line of more than 120 characters may wrap.
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH = 1300
FAULTY = """() => [...document.querySelectorAll("article pre")].filter(block => {
    const lines = block.textContent.replace(/\\n$/, "").split("\\n");
    const height = parseFloat(getComputedStyle(block).lineHeight) * lines.length;
    const wraps = block.clientHeight - height > 30 && Math.max(...lines.map(line => line.length)) <= 120;
    return block.scrollWidth > block.clientWidth || wraps;
}).length"""


def main(folder):
    browsers = [found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))]
    if not browsers:
        print("no Chromium: the code blocks are not checked")
        return 0
    pages = [page for page in sorted(Path(folder).rglob("*.html")) if "_modules" not in page.parts]
    faults = 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browsers[0], args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": WIDTH, "height": 900})
        tab.set_default_timeout(300_000)
        for page in pages:
            tab.goto(page.resolve().as_uri(), wait_until="domcontentloaded")
            faulty = tab.evaluate(FAULTY)
            faults += faulty
            if faulty:
                print(f"{page}: {faulty} code blocks are cut off or wrapped at {WIDTH} px")
        browser.close()
    print(f"{len(pages)} pages, {faults} faulty code blocks")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
