/* page_style.c: how pictures and pages look: light, dark, on paper, on a phone.
 *
 * Four colours mean the same everywhere: what holds a kernel, a layer or the step. On either background each has a
 * contrast of 3 : 1 or more, text of 4.5 : 1. */
#include "report/html/svg.h"

#define LIGHT                                                                                                         \
    "--paper:#fff;--panel:#f6f7f8;--ink:#1b2127;--dim:#59636e;--line:#d9dee3;--b0:#2b6cb0;--b1:#b7690f;--b2:#757d87;" \
    "--b3:#7c4dbb;--soft:#e4e8ec;--m0:#33618f;--m1:#2f8aa3;--m2:#3c8a4e;--m3:#b9487f;--m4:#8a6d1f;--m5:#7c4dbb;"      \
    "--m6:#a34a3c;--f0:#33618f;--f1:#2b7468;--f2:#55701f;--f3:#a34a3c;--good:#1d7a46;--bad:#b3261e;--onbar:#fff;"
#define DARK                                                                                                      \
    "--paper:#14181c;--panel:#1c2126;--ink:#e7eaed;--dim:#a3adb7;--line:#333b43;--b0:#64a5ea;--b1:#e2a044;"       \
    "--b2:#8e969f;--b3:#b694ea;--soft:#2a3138;--m0:#6c9fd4;--m1:#5fbdd4;--m2:#77c287;--m3:#e58ab5;--m4:#d1b455;"  \
    "--m5:#b694ea;--m6:#e08b7d;--f0:#6c9fd4;--f1:#5cb8a8;--f2:#a5c46b;--f3:#e08b7d;--good:#63c28d;--bad:#f2877f;" \
    "--onbar:#14181c;"

const char ft__colours_light[] = LIGHT;
const char ft__colours_dark[] = DARK;

const char ft__svg_style[] =
    "svg text{font:12px system-ui,-apple-system,\"Segoe UI\",Roboto,\"Helvetica Neue\",Arial,sans-serif;"
    "fill:var(--ink);font-variant-numeric:tabular-nums}svg .dim{fill:var(--dim)}svg .onbar{fill:var(--onbar)}"
    "svg .halo{paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round}"
    "svg .strong{font-weight:600}.paper{fill:var(--paper)}.grid{stroke:var(--line);stroke-width:1}"
    ".axis{stroke:var(--dim);stroke-width:1}.track{fill:var(--soft)}"
    ".b0{fill:var(--b0)}.b1{fill:var(--b1)}.b2{fill:var(--b2)}.b3{fill:var(--b3)}"
    ".m0{fill:var(--m0)}.m1{fill:var(--m1)}.m2{fill:var(--m2)}.m3{fill:var(--m3)}.m4{fill:var(--m4)}"
    ".m5{fill:var(--m5)}.m6{fill:var(--m6)}"
    ".f0{fill:var(--f0)}.f1{fill:var(--f1)}.f2{fill:var(--f2)}.f3{fill:var(--f3)}"
    ".dot{fill-opacity:.72;stroke:var(--paper);stroke-width:.75}.dot:hover{fill-opacity:1;stroke:var(--ink)}"
    ".roof{fill:none;stroke:var(--ink);stroke-width:2}.roof2{fill:none;stroke:var(--dim);stroke-width:1.25;"
    "stroke-dasharray:5 4}.whisker{stroke:var(--ink);stroke-width:2}.value{fill:var(--ink)}"
    ".limit{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:6 4}.band{fill-opacity:.16}"
    ".under{stroke:var(--paper);stroke-width:4}"
    ".s0{stroke:var(--m0)}.s1{stroke:var(--b1)}.s2{stroke:var(--m2)}.s3{stroke:var(--m3)}.s4{stroke:var(--m1)}"
    ".s5{stroke:var(--m4)}.s6{stroke:var(--b2)}.s7{stroke:var(--ink)}"
    ".v0{fill:var(--m0)}.v1{fill:var(--b1)}.v2{fill:var(--m2)}.v3{fill:var(--m3)}.v4{fill:var(--m1)}"
    ".v5{fill:var(--m4)}.v6{fill:var(--b2)}.v7{fill:var(--ink)}"
    ".curve{fill:none;stroke-width:2;stroke-linejoin:round}.edge{stroke:var(--paper);stroke-width:1}";

const char ft__page_style[] =
    "*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}"
    "body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,"
    "\"Helvetica Neue\",Arial,sans-serif;font-variant-numeric:tabular-nums}"
    "main,header,footer{max-width:1088px;margin:0 auto;padding:0 24px}header{padding-top:32px}"
    "h1{font-size:26px;line-height:1.2;margin:0 0 4px;font-weight:650;overflow-wrap:anywhere}"
    "h2{font-size:18px;margin:0 0 4px;font-weight:650}h3{font-size:15px;margin:20px 0 4px;font-weight:650}"
    "section{margin:36px 0 0;padding-top:20px;border-top:1px solid var(--line)}p{margin:0 0 "
    "12px;max-width:76ch;overflow-wrap:anywhere}"
    ".quiet{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}"
    ".figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(185px,1fr));gap:12px;margin:20px 0 "
    "4px;padding:0}"
    ".figures>div{background:var(--panel);border-radius:8px;padding:12px 14px;min-width:0}"
    ".figures dt{color:var(--dim);font-size:13px;overflow-wrap:anywhere}.figures dd{margin:0}"
    ".figures dd.big{font-size:22px;font-weight:650;line-height:1.25}.figures dd.small{font-size:13px;color:var(--dim)}"
    ".picture{display:block;max-width:100%;height:auto;margin:8px 0}.picture.narrow{display:none}"
    ".scroll{overflow-x:auto;margin:8px 0}.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--b0);"
    "outline-offset:2px}table{border-collapse:collapse;font-size:13px;width:100%}"
    "th,td{text-align:left;padding:5px 14px 5px 0;border-bottom:1px solid var(--line);white-space:nowrap;"
    "vertical-align:top}th{color:var(--dim);font-weight:600}td.n,th.n{text-align:right}"
    "td.wrap{white-space:normal;min-width:220px}"
    "details{margin:8px 0}summary{cursor:pointer;color:var(--dim);font-size:14px;padding:4px 0}"
    "ul.warn{padding-left:20px;margin:8px 0;color:var(--bad)}"
    "footer{color:var(--dim);font-size:13px;padding-top:28px;padding-bottom:40px}";

/* Phones, and paper: always light, details only where they were opened. */
const char ft__page_media[] =
    "@media(max-width:700px){main,header,footer{padding-left:16px;padding-right:16px}header{padding-top:20px}"
    "h1{font-size:21px}"
    ".stack,.stack tbody{display:block}.stack thead{display:none}"
    ".stack tr{display:flex;flex-wrap:wrap;gap:0 16px;padding:8px 0;border-bottom:1px solid var(--line)}"
    ".stack td{border:0;padding:0;white-space:normal}.stack td:empty{display:none}"
    ".stack td:first-child,.stack td.wrap{flex:0 0 100%;min-width:0}.stack td:first-child{font-weight:600}"
    ".stack td.wrap{color:var(--dim)}.stack td[data-name]::before{content:attr(data-name) \" \";color:var(--dim)}"
    ".picture.wide{display:none}.picture.narrow{display:block}"
    ".figures{grid-template-columns:1fr 1fr;gap:8px}.figures dd.big{font-size:19px}section{margin-top:28px}}"
    "@media print{:root{" LIGHT "}body{font-size:11px;background:#fff}.picture.wide{display:block}"
    ".picture.narrow{display:none}section{break-inside:avoid-page;margin-top:18px;padding-top:10px}"
    ".figures>div{border:1px solid var(--line)}details:not([open]){display:none}"
    "*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}";
