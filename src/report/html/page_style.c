/* page_style.c: how pages look: on a desk, on paper, on a phone. Colours, and what is in pictures, are data/style. */
#include "report/html/svg.h"

const char ft__page_style[] =
    "*{box-sizing:border-box}html{-webkit-text-size-adjust:100%}"
    "body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,"
    "\"Helvetica Neue\",Arial,sans-serif;font-variant-numeric:tabular-nums}"
    "main,header,footer{max-width:1088px;margin:0 auto;padding:0 24px}header{padding-top:32px}"
    "h1{font-size:26px;line-height:1.2;margin:0 0 4px;font-weight:650;overflow-wrap:anywhere}"
    "h2{font-size:18px;margin:0 0 4px;font-weight:650}h3{font-size:15px;margin:20px 0 4px;font-weight:650}"
    "section{margin:36px 0 0;padding-top:20px;border-top:1px solid var(--line)}p{margin:0 0 "
    "12px;overflow-wrap:anywhere}"
    ".paper{fill:var(--paper)}.quiet{color:var(--dim)}.good{color:var(--good)}.bad{color:var(--bad)}"
    ".figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(185px,1fr));gap:12px;margin:20px 0 "
    "4px;padding:0}"
    ".figures>div{background:var(--panel);border-radius:8px;padding:12px 14px;min-width:0}"
    ".figures dt{color:var(--dim);font-size:13px;overflow-wrap:anywhere}.figures dd{margin:0}"
    ".figures dd.big{font-size:22px;font-weight:650;line-height:1.25}.figures dd.small{font-size:13px;color:var(--dim)}"
    ".picture{display:block;max-width:100%;height:auto;margin:8px 0}.picture.narrow{display:none}"
    ".scroll{overflow-x:auto;margin:8px 0}.scroll:focus-visible,summary:focus-visible{outline:2px solid var(--accent);"
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
    ".figures{grid-template-columns:1fr 1fr;gap:8px}.figures dd.big{font-size:17px;overflow-wrap:anywhere}"
    "section{margin-top:28px}}"
    "@media print{body{font-size:11px;background:#fff}.picture.wide{display:block}"
    ".picture.narrow{display:none}section{break-inside:avoid-page;margin-top:18px;padding-top:10px}"
    ".figures>div{border:1px solid var(--line)}details:not([open]){display:none}"
    "*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}";
