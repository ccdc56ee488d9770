"""What the page's script does: sorting, tooltips, and planes that move and grow."""

import re

import pytest


@pytest.fixture
def page(open_page, plane_page):
    page = open_page(plane_page)
    page.get_by_role("button", name="Unfold all findings").click()
    return page


@pytest.fixture
def plane(page):
    found = page.locator("#GEO-05 .plane")
    found.scroll_into_view_if_needed()
    return found


def view(plane):
    return [float(v) for v in plane.locator(".view").get_attribute("viewBox").split()]


def middle(plane, u=0.5, v=0.5):
    """A place of the screen at shares of the frame."""
    box = plane.locator("rect.frame").bounding_box()
    return box["x"] + u * box["width"], box["y"] + (1 - v) * box["height"]


def column(page, table, i):
    return page.eval_on_selector_all(
        f"{table} tbody tr", f"rows => rows.map(r => r.cells[{i}].textContent)"
    )


def test_tables_sort_by_number_forwards_backwards_and_not_at_all(page, plane_audit):
    table, i = "#ACC-02 table", 3
    head = page.locator(f"{table} th").nth(i)
    before = column(page, table, i)
    assert len(set(before)) > 3 and head.get_attribute("aria-sort") == "none"
    head.locator("button").click()
    found = [float(v) for v in column(page, table, i)]
    assert head.get_attribute("aria-sort") == "descending" and found == sorted(found, reverse=True)
    page.keyboard.press("Enter")  # the button still has the focus
    found = [float(v) for v in column(page, table, i)]
    assert head.get_attribute("aria-sort") == "ascending" and found == sorted(found)
    page.keyboard.press("Space")
    assert column(page, table, i) == before and head.get_attribute("aria-sort") == "none"


def test_sorting_knows_percentages_thousands_powers_words_and_dashes(page):
    cells = ["9.5%", "–", "1,200", "1e-05", "unbounded", "−3", "12", "alpha", "Beta"]
    page.evaluate(
        """cells => {
          const table = document.querySelector("#ACC-02 table"), row = table.tBodies[0].rows[0];
          table.tBodies[0].replaceChildren(...cells.map((text, i) => {
            const copy = row.cloneNode(true); copy.cells[1].textContent = text; copy.dataset.place = i;
            return copy; })); }""",
        cells,
    )
    button = page.locator("#ACC-02 th button").nth(1)
    button.click()
    button.click()
    expected = ["−3", "1e-05", "9.5%", "12", "1,200", "unbounded", "alpha", "Beta", "–"]
    assert column(page, "#ACC-02 table", 1) == expected


def test_keys_enlarge_move_and_reset_the_map(plane):
    whole = view(plane)
    plane.focus()
    plane.press("+")
    grown = view(plane)
    assert grown[2] == pytest.approx(whole[2] / 1.6) and grown[3] == pytest.approx(whole[3] / 1.6)
    assert grown[0] + grown[2] / 2 == pytest.approx(whole[2] / 2)
    plane.press("ArrowRight")
    assert view(plane)[0] == pytest.approx(grown[0] + grown[2] / 8) and view(plane)[1] == grown[1]
    plane.press("ArrowUp")  # up shows what is above: a smaller y of the picture
    assert view(plane)[1] == pytest.approx(grown[1] - grown[3] / 8)
    plane.press("-")
    plane.press("0")
    assert view(plane) == whole


def test_axes_and_points_follow_the_map(page, plane, plane_audit):
    def labels():
        return [float(t.replace("−", "-")) for t in plane.locator(".ticks .x").all_text_contents()]

    left, right, *_ = plane_audit["GEO-05"].figure.extent
    before, dots = labels(), plane.locator(".at").count()
    assert left <= min(before) and max(before) <= right and dots >= 60
    for _ in range(4):
        page.get_by_role("button", name="Zoom in").click()
    after = labels()
    part = (right - left) / 1.6**4
    assert len(after) >= 3 and max(after) - min(after) <= part + 1e-9
    # A point stays where its coordinates are: compare the first with the axis.
    spot = plane_audit["GEO-05"].figure.dots[0]
    x, width = (float(plane.locator("rect.frame").get_attribute(k)) for k in ("x", "width"))
    box = view(plane)
    grid = plane_audit["GEO-05"].figure.grid[0]
    expected = x + ((spot.x - left) / (right - left) * grid - box[0]) / box[2] * width
    moved = plane.locator(".at[data-tip]").first.get_attribute("transform")
    assert float(re.match(r"translate\(([-\d.]+)", moved)[1]) == pytest.approx(expected, abs=0.2)
    assert page.get_by_role("button", name="Reset view").is_enabled()
    page.get_by_role("button", name="Reset view").click()
    assert labels() == before and page.get_by_role("button", name="Reset view").is_disabled()


def test_the_wheel_scrolls_the_page_until_the_map_is_chosen(page, plane):
    whole = view(plane)
    page.mouse.move(*middle(plane))
    page.mouse.wheel(0, 120)
    page.wait_for_timeout(50)
    assert view(plane) == whole
    plane.scroll_into_view_if_needed()
    page.mouse.move(*middle(plane, 0.25, 0.5))
    page.mouse.down()
    page.mouse.up()
    page.mouse.wheel(0, -300)
    page.locator(".plane.zoomed").wait_for()
    grown = view(plane)
    # What was under the pointer stays there.
    assert grown[0] + 0.25 * grown[2] == pytest.approx(0.25 * whole[2], rel=0.02)


def test_dragging_moves_the_enlarged_map(page, plane):
    plane.focus()
    plane.press("+")
    plane.press("+")
    before = view(plane)
    page.mouse.move(*middle(plane))
    page.mouse.down()
    page.mouse.move(*middle(plane, 0.7, 0.5))
    page.mouse.up()
    assert view(plane)[0] == pytest.approx(before[0] - 0.2 * before[2], rel=0.02)
    assert view(plane)[1] == pytest.approx(before[1], abs=0.01 * before[3])
    page.mouse.move(*middle(plane, 0.2, 0.2))
    assert view(plane)[0] == pytest.approx(before[0] - 0.2 * before[2], rel=0.02)  # let go


def test_two_fingers_enlarge_the_map(open_page, plane_page):
    page = open_page(plane_page, 400, has_touch=True)
    plane = page.locator(".plane")
    plane.scroll_into_view_if_needed()
    whole = view(plane)
    fingers = page.context.new_cdp_session(page)
    for kind, apart in (("touchStart", 0.1), ("touchMove", 0.2), ("touchMove", 0.3), ("touchEnd", None)):
        places = [] if apart is None else [middle(plane, 0.5 - apart), middle(plane, 0.5 + apart)]
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(places)]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    page.locator(".plane.zoomed").wait_for()
    assert whole[2] / 5 < view(plane)[2] < whole[2] / 2


def test_a_finger_asks_what_a_place_is(open_page, plane_page):
    page = open_page(plane_page, 400, has_touch=True)
    plane = page.locator(".plane")
    plane.scroll_into_view_if_needed()
    page.touchscreen.tap(*middle(plane, 0.3, 0.4))
    assert "class " in page.locator(".tip").inner_text()


def test_the_pointer_asks_what_cell_and_point_it_is(page, plane, plane_audit):
    tip, net = page.locator(".tip"), plane_audit.network
    left, right, low, high = plane_audit["GEO-05"].figure.extent
    for u, v in ((0.12, 0.13), (0.81, 0.22), (0.33, 0.86)):
        page.mouse.move(*middle(plane, u, v))
        lines = tip.inner_text().splitlines()
        x = (left + u * (right - left), low + v * (high - low))
        dot = any(
            abs(d.x - x[0]) < 0.05 and abs(d.y - x[1]) < 0.05 for d in plane_audit["GEO-05"].figure.dots
        )
        if not dot:
            assert lines[0] == f"class {net([x])[0].argmax()}"
        shown = [float(line.split(" = ")[1].replace("−", "-")) for line in lines[-2:]]
        assert shown == pytest.approx(x, abs=0.01)
    spot = plane_audit["GEO-05"].figure.dots[5]
    page.mouse.move(*middle(plane, (spot.x - left) / (right - left), (spot.y - low) / (high - low)))
    assert tip.inner_text().startswith(f"data point, class {spot.group}")
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_bars_say_how_many(page, plane_audit):
    bar = page.locator("#ACC-02 .drawing [data-tip]").nth(3)
    bar.scroll_into_view_if_needed()
    bar.hover()
    said = page.locator(".tip").inner_text()
    assert said == bar.get_attribute("data-tip") and re.search(r": \d+ rows$", said)
    counts = [
        int(re.search(r": (\d+) rows", t)[1])
        for t in page.eval_on_selector_all(
            "#ACC-02 .drawing [data-tip]", "bars => bars.map(b => b.dataset.tip)"
        )
    ]
    assert sum(counts) == 60
