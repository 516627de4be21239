"""Either engine makes the site from the same config, strictly, and leaves the old one where it fails."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from encyclopedia.build.project import Project, find_project
from encyclopedia.build.site import Engine, SiteFailed, build_site
from encyclopedia.page.document import document


@pytest.fixture(params=list(Engine))
def engine(request: pytest.FixtureRequest) -> Engine:
    pytest.importorskip(request.param)
    return request.param


@pytest.fixture
def small(tmp_path: Path) -> Project:
    """A project of the real config and theme, with the pages that the navigation names."""
    root = find_project(Path(__file__).parent).root
    shutil.copytree(root / "templates", tmp_path / "templates")
    config = (root / "mkdocs.yml").read_text(encoding="utf-8").replace("hooks:\n  - scripts/mkdocs_hook.py\n", "")
    (tmp_path / "mkdocs.yml").write_text(config, encoding="utf-8")
    for page in ("", "models", "values", "compare", "checks", "machines", "families/doge"):
        file = tmp_path / "site_src" / page / "index.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        up = "../" * len(Path(page).parts)
        html = f'<p><a href="{up}families/doge/#block=0">first</a></p>'
        file.write_text(document(html, title=page or "Home", hue=0, scripts=["printout.js"]), encoding="utf-8")
    return Project(tmp_path)


def test_a_site_is_made_in_place(small: Project, engine: Engine) -> None:
    build_site(small, engine)
    text = (small.site / "checks" / "index.html").read_text(encoding="utf-8")
    assert 'href="../families/doge/#block=0"' in text
    assert 'src="../assets/js/printout.js"' in text
    assert text.count('aria-label="Search"') >= 1
    assert 'aria-label="Search" aria-label="Search"' not in text
    assert not list(small.root.glob("site.new-*"))


def test_a_site_that_knows_its_address(small: Project, engine: Engine) -> None:
    build_site(small, engine, address="https://example.org/some/where/")
    missing = (small.site / "404.html").read_text(encoding="utf-8")
    assert 'href="/some/where/assets/css/missing.css"' in missing
    assert '<a href="https://example.org/some/where/">' in missing
    sitemap = (small.site / "sitemap.xml").read_text(encoding="utf-8")
    assert "<loc>https://example.org/some/where/checks/</loc>" in sitemap
    page = (small.site / "checks" / "index.html").read_text(encoding="utf-8")
    assert 'href="../families/doge/#block=0"' in page


def test_a_failure_leaves_the_old_site(small: Project, engine: Engine) -> None:
    small.site.mkdir()
    (small.site / "index.html").write_text("old", encoding="utf-8")
    (small.source / "index.md").write_text("[gone](gone.md)", encoding="utf-8")
    with pytest.raises(SiteFailed, match=engine):
        build_site(small, engine)
    assert (small.site / "index.html").read_text(encoding="utf-8") == "old"
    assert not list(small.root.glob("site.new-*"))
